"""Validate Nodes and RuntimeClasses: checks of the rules of their strategies."""

from typing import Any

from federation.apimachinery.fielderrors import Causes, duplicate, invalid
from federation.apiserver.semantics.validation.addressvalidation import validate_network
from federation.apiserver.semantics.validation.quantityvalidation import is_counted, validate_amount
from federation.apiserver.semantics.validation.selectorvalidation import validate_toleration


def has_pod_ranges(ranges: Any, field: str) -> Causes:
    """Check the addresses of a node's pods: one range of each IP family at most."""
    causes = [
        found for index, text in enumerate(ranges or ()) for found in validate_network(text or "", f"{field}[{index}]")
    ]
    families = [":" in (text or "") for text in ranges or ()]
    if len(families) > len(set(families)):
        causes.append(invalid(field, ranges, "may specify no more than one CIDR for each IP family"))
    return causes


def has_amounts(amounts: Any, field: str) -> Causes:
    """Check the capacity of a node. The path is that of `a.name`, as in kube-apiserver."""
    return [
        found
        for name, amount in (amounts or {}).items()
        for found in validate_amount(name, amount, f"{field}.{name}", is_count=is_counted(name))
    ]


def has_overhead(amounts: Any, field: str) -> Causes:
    """Check the overhead of a RuntimeClass. The path is that of limits, as in kube-apiserver."""
    at = field.replace("podFixed", "limits")
    return [
        found
        for name, amount in (amounts or {}).items()
        for found in validate_amount(name, amount, f"{at}[{name}]", is_count=is_counted(name))
    ]


def has_tolerations(tolerations: Any, field: str) -> Causes:
    """Check the tolerations of a RuntimeClass, which must differ."""
    causes: Causes = []
    seen: list[Any] = []
    for index, toleration in enumerate(tolerations or ()):
        found = toleration or {}
        causes += validate_toleration(found, f"{field}[{index}]")
        if found in seen:
            causes.append(duplicate(f"{field}[{index}]", dict(found)))
        seen.append(found)
    return causes
