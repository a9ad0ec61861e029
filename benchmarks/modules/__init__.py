"""The cost of a module: a call, a start, an artifact, an image."""
