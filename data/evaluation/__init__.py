"""Testing: predictions to errors and a report."""
