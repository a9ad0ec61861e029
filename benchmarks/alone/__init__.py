"""What accounts cost whoever is alone."""
