"""This product beside an earlier commit of itself, in one run."""
