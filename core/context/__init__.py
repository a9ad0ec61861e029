"""What a model sees, in which order, and within which budget. Pure."""
