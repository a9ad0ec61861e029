"""The python module: an interpreter with a memory, for each agent."""
