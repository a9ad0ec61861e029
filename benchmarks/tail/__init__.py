"""The cost of each place of the dynamic block, on the real llama.cpp server."""
