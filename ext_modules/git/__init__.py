"""The git module: repositories in the workspace, cloned, looked into and committed to."""
