"""What a model sees, in which order, within which budget. Pure."""
