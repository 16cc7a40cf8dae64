"""What the study of time lines runs and compares: published times, cards, a layer in Triton."""
