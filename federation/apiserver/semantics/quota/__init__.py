"""ResourceQuota arithmetic: what objects use, which quotas count them, which limits they exceed. Pure."""
