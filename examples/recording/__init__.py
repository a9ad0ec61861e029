"""Records the examples again; see `__main__`."""
