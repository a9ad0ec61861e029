"""Agents of other people's, asked by the Agent2Agent protocol."""
