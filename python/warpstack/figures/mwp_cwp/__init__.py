"""Figures and tables of MWP-CWP."""
