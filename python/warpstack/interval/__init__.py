"""The interval stage: what one warp does between its stalls."""
