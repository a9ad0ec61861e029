"""A child agent and what a step leaves on the disk: now, at an earlier commit, and beside peers, in one run."""
