"""Common ground of all layers: errors, clock, supervised tasks, logs, metrics. Knows nothing of Kubernetes objects."""
