"""Snapshots: writing and reading them, and what they record."""
