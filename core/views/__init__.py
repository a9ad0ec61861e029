"""What people are shown of a session: made from its tree or its records, never changing either."""
