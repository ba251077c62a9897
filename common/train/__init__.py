"""Training: what one run does from its start to its last snapshot."""
