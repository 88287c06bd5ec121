"""What every layer may use: errors, clock, supervised tasks, logs, metrics. It knows nothing of Kubernetes objects."""
