"""Helpers that every stage uses: arguments, files, progress."""
