"""What models met in recorded sessions: what their contexts consisted of, and what became of their replies."""
