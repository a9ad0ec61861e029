"""The Agent2Agent protocol: other people's agents give our sessions tasks."""
