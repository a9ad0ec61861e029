"""What modules run in: systems made of Debian packages and wheels, whatever the backend."""
