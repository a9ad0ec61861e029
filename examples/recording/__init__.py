"""Records the examples anew; see `__main__`."""
