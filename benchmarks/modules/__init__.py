"""What a module costs: a call, a start, an artifact, an image."""
