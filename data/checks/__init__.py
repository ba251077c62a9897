"""Checks of samples while a data set is opened."""
