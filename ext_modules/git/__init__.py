"""The git module: clone repositories into the workspace, inspect them, and commit to them."""
