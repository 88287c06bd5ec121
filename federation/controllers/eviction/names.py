"""Reasons of condition EvictionAllowed besides `planning/failover/halts.py`, and event reasons of this controller."""

REASON_EVICTION_ALLOWED = "EvictionAllowed"
EVENT_EVICTION_HALTED = "EvictionHalted"
EVENT_EVICTION_RESUMED = "EvictionResumed"
