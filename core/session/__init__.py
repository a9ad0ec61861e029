"""A running session: carries out what the tree says is needed, and appends the results to the journal."""
