"""Plans: a DAG of tool and agent nodes, run under one of seven modes.

A plan's history is a fold over two kinds of events, `NodeChange` and `PlanVersion` (`state.py`). A pure machine
(`machine.py`) decides which event comes next: it is passed what happened and returns what to do (`commands.py`). The
tree passes it records (`core.tree.apply_plan`), and a session carries out its commands. This package knows neither
agents nor modules nor models: see `protocol.py`.
"""
