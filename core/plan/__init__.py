"""Plans: a DAG of tool and agent nodes, run by one engine under one of seven modes.

What happens to a plan is a fold over two kinds of events, `NodeChange` and `PlanVersion`
(`state.py`); the engine (`engine.py`) only decides which event comes next and waits for the world.
The room knows neither agents nor modules nor models: see the Protocols in `seams.py`.
"""
