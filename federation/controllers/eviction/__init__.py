"""Halts and turns of failover: what may leave lost and drained clusters now, and how clusters say so."""
