"""Choose replicas to remove for a workload of higher priority without room (docs/reference/preemption.md). Pure."""
