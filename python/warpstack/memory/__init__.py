"""The memory stage: caches, reuse distances, occupancy."""
