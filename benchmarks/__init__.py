"""Side-by-side measurements; each folder is one comparison that prints a table and JSON."""
