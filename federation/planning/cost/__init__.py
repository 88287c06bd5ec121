"""The cost of replicas: rates of clusters, the cheapest division, and budgets. Pure arithmetic on integers."""
