"""The contents of a journal: one class for each kind of record, and how each is encoded in its record's header."""
