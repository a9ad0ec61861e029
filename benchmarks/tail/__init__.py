"""What the place of the dynamic block costs, on the real llama.cpp server."""
