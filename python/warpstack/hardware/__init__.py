"""Descriptions of GPUs, the only configuration that the stages read."""
