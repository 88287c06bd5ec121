"""Validate quantities: amounts of resources, which are 0 or more, and whole numbers if they count things."""

from typing import Any

from federation.apimachinery import quantity as quantities
from federation.apimachinery.fielderrors import Causes, invalid
from federation.apiserver.semantics.schema.formats import QUANTITY_ERROR

_NATIVE_DOMAIN = "kubernetes.io/"
_HUGE_PAGES = "hugepages-"
_INT64_MAX = 2**63 - 1
_COUNTED = frozenset(
    {
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
"""Native resources that are whole numbers."""


def validate_quantity(quantity: Any, field: str) -> Causes:
    """Validate a quantity of 0 or more."""
    try:
        found = quantities.parse(quantity)
    except ValueError:
        return [invalid(field, quantity, QUANTITY_ERROR)]
    return [invalid(field, quantity, "must be greater than or equal to 0")] if found.nanos < 0 else []


def validate_positive_quantity(quantity: Any, field: str) -> Causes:
    """Validate a quantity of more than 0."""
    try:
        found = quantities.parse(quantity)
    except ValueError:
        return [invalid(field, quantity, QUANTITY_ERROR)]
    return [] if found.nanos > 0 else [invalid(field, quantity, "must be greater than zero")]


def validate_amount(name: str, quantity: Any, field: str, *, is_count: bool = False) -> Causes:
    """Validate the amount of a resource: a whole number for an extended one or if `is_count`."""
    causes = validate_quantity(quantity, field)
    if (is_count or is_extended(name)) and (not causes or causes[0]["message"].endswith("equal to 0")):
        amount = quantities.parse(quantity)
        if min(amount.milli, _INT64_MAX) % 1000:
            causes.append(invalid(field, quantity, "must be an integer"))
    return causes


def is_counted(name: str) -> bool:
    """Return True for a native resource that counts objects."""
    return name in _COUNTED


def is_negative(quantity: Any) -> bool:
    """Return True for a quantity below 0."""
    try:
        return quantities.parse(quantity).nanos < 0
    except ValueError:
        return False


def is_extended(name: str) -> bool:
    """Return True for a resource of another domain than Kubernetes', which devices provide."""
    return "/" in name and _NATIVE_DOMAIN not in name and not name.startswith("requests.")


def is_overcommittable(name: str) -> bool:
    """Return True if a container's request of the resource may be less than its limit."""
    return not is_extended(name) and not name.startswith(_HUGE_PAGES)
