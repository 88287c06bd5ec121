"""What the host says about a delivery: sources, admission, followers, guards and Leftovers."""
