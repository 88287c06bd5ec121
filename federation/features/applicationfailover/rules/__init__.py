"""Health of one copy, and which cluster a workload leaves. Pure."""
