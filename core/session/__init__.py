"""A running session: does what the tree says is needed, and appends to the journal what came of it."""
