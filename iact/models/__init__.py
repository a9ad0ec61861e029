"""The model on board and models that a person adds: their files, where they come from, and running them."""
