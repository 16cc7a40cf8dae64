"""Traces of kernels: values, files and patterns."""
