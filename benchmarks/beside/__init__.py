"""This product compared with an earlier commit of itself, in one run."""
