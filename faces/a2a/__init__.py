"""The Agent2Agent protocol: third-party agents give tasks to sessions."""
