"""Retrieval quality of the Hippocampus against plain top-k by the same embeddings, and what recall costs."""
