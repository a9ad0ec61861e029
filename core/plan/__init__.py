"""Plans: a DAG of tool and agent nodes, run under one of seven modes.

What happens to a plan is a fold over two kinds of events, `NodeChange` and `PlanVersion` (`state.py`). Which event comes
next is decided by a pure machine (`machine.py`) that is told what happened and says what is to be done (`commands.py`).
The tree tells it by records (`core.tree.apply_plan`), and a session does what it says. The room knows neither agents
nor modules nor models: see `seams.py`.
"""
