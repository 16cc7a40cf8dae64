"""Reasons: which change of the GPU a kernel would gain from most, and how much."""
