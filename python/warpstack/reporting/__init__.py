"""Where a kernel loses its time, by line of its source, and all that is known of it on one page."""
