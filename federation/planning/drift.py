"""Whether a live object already holds everything that is wanted, so that a write would change nothing.

`is_subset` compares an applied configuration with what an API server gives back for it: defaults and other owners'
fields may be there in addition, quantities may be written differently, empty values may have been left out, and lists
that Kubernetes treats as maps may have further entries. When it errs, it errs towards "not a subset", which costs one
write that changes nothing. Pure; `dispatch/plan.py` asks it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api.quantity import parse

_QUANTITIES = frozenset(
    {
        "requests",
        "limits",
        "capacity",
        "hard",
        "overhead",
        "allocatable",
        "default",
        "defaultRequest",
        "max",
        "min",
        "maxLimitRequestRatio",
        "podFixed",
    }
)
"""Maps whose values are quantities, wherever they occur in a spec."""
_QUANTITY_FIELDS = frozenset({"sizeLimit", "divisor", "averageValue"})

_LIST_KEYS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "containers": (("name",),),
    "initContainers": (("name",),),
    "ephemeralContainers": (("name",),),
    "env": (("name",),),
    "volumes": (("name",),),
    "imagePullSecrets": (("name",),),
    "secrets": (("name",),),
    "volumeMounts": (("mountPath",),),
    "volumeDevices": (("devicePath",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
    "hostAliases": (("ip",),),
    "topologySpreadConstraints": (("topologyKey", "whenUnsatisfiable"),),
    "ownerReferences": (("uid",),),
    "resourceClaims": (("name",),),
    "conditions": (("type",),),
}
"""Lists that are maps in Kubernetes' schemas, with the keys by which entries are found."""

_LIST_SETS = frozenset({"finalizers"})
_EXACT = frozenset({"annotations", "labels", "data", "matchLabels", "nodeSelector", "parameters"})
"""Maps of texts that a server never rewrites: an empty text in them is a value like any other."""


def is_subset(desired: Any, live: Any, *, field: str = "") -> bool:
    """Say whether everything in `desired` is in `live`; `field` is the name of the field that holds both."""
    if isinstance(desired, Mapping):
        if not isinstance(live, Mapping):
            return not desired and live is None
        return _is_mapping_subset(desired, live, field)
    if isinstance(desired, list):
        if not isinstance(live, list):
            return not desired and live is None
        return _is_list_subset(desired, live, field)
    if isinstance(desired, bool) or isinstance(live, bool):
        return desired is live
    return bool(desired == live)


def _is_mapping_subset(desired: Mapping[str, Any], live: Mapping[str, Any], field: str) -> bool:
    is_exact = field in _EXACT
    for key, wanted in desired.items():
        if key not in live:
            if wanted is None or (not is_exact and not wanted):
                continue
            return False
        held = live[key]
        if wanted == held and type(wanted) is type(held):
            continue
        if field in _QUANTITIES or key in _QUANTITY_FIELDS:
            if not _is_same_quantity(wanted, held):
                return False
        elif not is_subset(wanted, held, field=key):
            return False
    return True


def _is_same_quantity(desired: Any, live: Any) -> bool:
    try:
        return parse(desired) == parse(live) or parse(desired).nanos == parse(live).nanos
    except (ValueError, TypeError):
        return is_subset(desired, live)


def _is_list_subset(desired: Sequence[Any], live: Sequence[Any], field: str) -> bool:
    if len(desired) == len(live) and all(is_subset(d, v) for d, v in zip(desired, live, strict=True)):
        return True
    if field in _LIST_SETS:
        return all(item in live for item in desired)
    for keys in _LIST_KEYS.get(field, ()):
        if all(isinstance(item, Mapping) and keys[0] in item for item in desired):
            return _is_keyed_subset(desired, live, keys)
    return False


def _is_keyed_subset(desired: Sequence[Mapping[str, Any]], live: Sequence[Any], keys: tuple[str, ...]) -> bool:
    found = {_identity(item, keys): item for item in live if isinstance(item, Mapping)}
    return all((held := found.get(_identity(item, keys))) is not None and is_subset(item, held) for item in desired)


def _identity(item: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    # The only key of these lists that has a default is a port's protocol.
    return tuple(item.get(key, "TCP" if key == "protocol" else None) for key in keys)
