"""Shared by the commands: options and how they are read, output, messages, files of sweeps."""
