"""What faces cost whoever does not use them."""
