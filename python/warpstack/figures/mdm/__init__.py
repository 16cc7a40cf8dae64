"""Figures and tables of MDM."""
