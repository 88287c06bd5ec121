"""Admission: what others, configured as Kubernetes objects, have to say about a write before it is stored."""
