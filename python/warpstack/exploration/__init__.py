"""Design spaces: sweeps and their stores, search, sensitivity."""
