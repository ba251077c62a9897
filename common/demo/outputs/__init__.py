"""The files that the demo writes."""
