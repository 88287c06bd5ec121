"""The suite as a whole: tiers, the cost of each test, the quarantine, and which tests a change can reach."""
