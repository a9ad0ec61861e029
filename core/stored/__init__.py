"""Stored sessions and what a data directory holds beside them: lists, searches, copies, archives, versions, modules."""
