"""Modules in name spaces that bubblewrap makes, for machines without an engine."""
