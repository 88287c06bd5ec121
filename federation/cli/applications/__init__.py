"""Applications on the command line: what belongs to a workload, what a move leaves behind, and whether its pods run."""
