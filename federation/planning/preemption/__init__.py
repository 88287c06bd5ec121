"""Who gives way to a workload of higher priority that finds no room (docs/reference/preemption.md). Pure."""
