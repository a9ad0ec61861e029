"""The cost of a child agent and the stored bytes per step: now, at an earlier commit and in other frameworks."""
