"""Figures and tables of the cache paper."""
