"""The seven-group experiment of the Graph Harness paper (section 8), which it designed and did not run."""
