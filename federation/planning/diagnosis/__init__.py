"""What `fedctl doctor` finds wrong, from facts that it collected."""
