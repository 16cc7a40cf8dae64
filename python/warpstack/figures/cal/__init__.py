"""Figures of the CAL'19 paper."""
