"""Inspect, the evaluation framework: a session as an Inspect log, and as a solver of Inspect tasks.

Needs the extra `inspect`. Nothing here is loaded unless it is used.
"""
