"""Common Expression Language in Kubernetes: programs, the function library, validation rules, cost estimates."""
