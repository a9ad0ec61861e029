"""The systems that modules run in: made of Debian packages and wheels, whatever the backend."""
