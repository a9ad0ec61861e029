"""What a server takes while many sessions are used once and left."""
