"""Predictions held against references."""
