"""The python module: an interpreter that remembers, for each agent."""
