"""What several packages read from the caches of members."""
