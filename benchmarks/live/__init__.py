"""What the overlay of a live directory costs, beside a copy of the directory."""
