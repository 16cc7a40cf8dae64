"""The documentation's pictures: what draws each, from what, and whether it is still what would be drawn."""
