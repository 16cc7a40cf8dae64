"""What the commands share: options and how they are read, output, messages; and files of sweeps."""
