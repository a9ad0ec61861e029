"""Everyday shell lines that the classifier does not understand, and hostile ones that it takes for read-only."""
