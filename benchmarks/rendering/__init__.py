"""How one client's text delays the answers to another client."""
