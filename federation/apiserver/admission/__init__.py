"""Admission: webhooks and policies, configured as Kubernetes objects, that change or deny writes."""
