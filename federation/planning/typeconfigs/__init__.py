"""FederatedTypeConfigs that the control plane derives (docs/reference/kinds.md). Pure."""
