"""Command lines, configuration and the network."""
