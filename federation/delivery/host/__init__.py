"""The host's part of a delivery: sources, admission, followers, guards and Leftovers."""
