"""The priority of a workload: that of its PriorityClass on the host. Pure.

A class that the host does not have gives no priority, so that nobody gains by naming one.
"""

from collections.abc import Mapping
from typing import Any


def priority_of(priority_class: Mapping[str, Any] | None) -> int:
    """Return the value of a class, 0 without one."""
    value = (priority_class or {}).get("value")
    return value if type(value) is int else 0


def may_preempt(priority_class: Mapping[str, Any] | None) -> bool:
    """Return whether others give way to workloads of the class."""
    return priority_class is not None and priority_class.get("preemptionPolicy") != "Never"
