"""What a journal says: one class for each kind of record, and how each stands in the header of its record."""
