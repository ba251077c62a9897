"""Synthetic images of people and hands."""
SPLITS = {'train': 0, 'validation': 1, 'test': 2, 'gallery': 3}  # and where their random numbers begin
