"""Figures of GPUMech."""
