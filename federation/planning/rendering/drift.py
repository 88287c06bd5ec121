"""Whether a live object has every field of an applied configuration, and whether an update may have changed that.

`is_subset` compares the configuration with the object that an API server returns for it. The object may have further
fields (defaults, other owners), further entries in lists that Kubernetes treats as maps, differently written quantities
and no empty values. A wrong answer is always "not a subset"; it costs one write that changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery import wellknown
from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.quantity import parse

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
"""Maps whose values are quantities, at any depth."""
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
"""Lists that are maps in Kubernetes' schemas, with their keys."""

_LIST_SETS = frozenset({"finalizers"})
_EXACT = frozenset({"annotations", "labels", "data", "matchLabels", "nodeSelector", "parameters"})
"""String maps that a server never rewrites; an empty string in them is an ordinary value."""


def is_subset(desired: Any, live: Any, *, field: str = "") -> bool:
    """Return True if `live` has everything in `desired`; `field` is the name of the field that holds both."""
    if desired.__class__ is dict or isinstance(desired, Mapping):
        if not (live.__class__ is dict or isinstance(live, Mapping)):
            return not desired and live is None
        return _is_mapping_subset(desired, live, field)
    if isinstance(desired, list):
        if not isinstance(live, list):
            return not desired and live is None
        return _is_list_subset(desired, live, field)
    return is_json_equal(desired, live)


def _is_mapping_subset(desired: Mapping[str, Any], live: Mapping[str, Any], field: str) -> bool:
    is_exact = field in _EXACT
    for key, wanted in desired.items():
        if key not in live:
            if wanted is None or (not is_exact and not wanted):
                continue
            return False
        held = live[key]
        if wanted is held or (wanted.__class__ is str and wanted == held) or is_json_equal(wanted, held):
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
    try:
        found = {_identity(item, keys): item for item in live if isinstance(item, Mapping)}
    except TypeError:  # a key that is a list or a map
        return False
    return all((held := found.get(_identity(item, keys))) is not None and is_subset(item, held) for item in desired)


def _identity(item: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    # The only key of these lists that has a default is a port's protocol.
    return tuple(item.get(key, "TCP" if key == "protocol" else None) for key in keys)


def find_item(wanted: Any, live: Sequence[Any], field: str) -> Any:
    """Return the item of a live list that is `wanted` by the list's keys, None when there is none or no keys."""
    for keys in _LIST_KEYS.get(field, ()):
        if isinstance(wanted, Mapping) and keys[0] in wanted:
            key = _identity(wanted, keys)
            return next((item for item in live if isinstance(item, Mapping) and _identity(item, keys) == key), None)
    return None


def pair_items(wanted: Sequence[Any], live: Sequence[Any], field: str) -> list[tuple[Any, Any]]:
    """Return the wanted items of a list that is a map, each with the live item of its key (None when there is none).

    Empty for lists that are no maps, and for keys that cannot be compared.
    """
    for keys in _LIST_KEYS.get(field, ()):
        if not all(isinstance(item, Mapping) and keys[0] in item for item in wanted):
            continue
        try:
            found = {_identity(item, keys): item for item in live if isinstance(item, Mapping)}
            return [(item, found.get(_identity(item, keys))) for item in wanted]
        except TypeError:  # a key that is a list or a map
            return []
    return []


def may_have_drifted(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return True if an update may have removed or changed an applied field; additions and the status cannot."""
    before, after = old["metadata"], new["metadata"]
    if before.get("uid") != after.get("uid") or before.get("deletionTimestamp") != after.get("deletionTimestamp"):
        return True
    if any(_has_lost(before.get(name), after.get(name)) for name in ("labels", "annotations")):
        return True
    if "generation" in after:
        return bool(before.get("generation") != after["generation"])
    keys = (old.keys() | new.keys()) - {"metadata", "status"}
    return any(old.get(key) != new.get(key) for key in keys)


def _has_lost(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> bool:
    """Return whether an entry was removed or changed, the Deployment controller's revision counter aside."""
    if not before or before == after:
        return False
    held = after or {}
    return any(held.get(key) != value for key, value in before.items() if key != wellknown.DEPLOYMENT_REVISION)
