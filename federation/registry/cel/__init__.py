"""Common Expression Language as Kubernetes uses it: expressions, its function library, rules of custom resources."""
