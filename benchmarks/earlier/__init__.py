"""What the runtime costs now and at an earlier commit."""
