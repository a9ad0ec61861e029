"""Inspect, the evaluation framework: a session as one of its logs, and as a solver of its tasks.

Needs the extra `inspect`; nothing here is loaded by what doesn't use it.
"""
