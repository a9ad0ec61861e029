"""Asks other people's agents by the Agent2Agent protocol."""
