"""What faces cost users who do not use them."""
