"""What accounts cost an installation with a single user."""
