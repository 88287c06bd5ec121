"""The priority of a workload: the value of its PriorityClass on the host. Pure.

A class that the host does not have counts as 0, so naming an unknown class gives no advantage.
"""

from collections.abc import Mapping
from typing import Any


def priority_of(priority_class: Mapping[str, Any] | None) -> int:
    """Return the value of a class, 0 without one."""
    value = (priority_class or {}).get("value")
    return value if type(value) is int else 0


def may_preempt(priority_class: Mapping[str, Any] | None) -> bool:
    """Return whether workloads of the class may preempt others."""
    return priority_class is not None and priority_class.get("preemptionPolicy") != "Never"
