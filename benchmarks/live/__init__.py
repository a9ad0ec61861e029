"""The cost of the overlay of a live directory, compared with a copy of the directory."""
