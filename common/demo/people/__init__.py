"""What is computed for each person."""
