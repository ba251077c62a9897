"""Networks, body models, the training engine and shared utilities."""
