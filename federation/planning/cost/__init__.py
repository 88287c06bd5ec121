"""What replicas cost: rates of clusters, the cheapest division, and budgets. Pure arithmetic on integers."""
