"""Whether an update brings a change that a ClusterOverridePolicy makes to an object. Pure.

Administrators restrict what runs in members with ClusterOverridePolicies, so their changes pass the holds of the users
of a namespace. The overrides of a federated object are stored as one list per cluster. An object with a
ClusterOverridePolicy therefore counts with all of its overrides: a wrong answer is always "it brings a change".
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from federation.api import names
from federation.apimachinery.jsonpatch import parse_pointer
from federation.planning.federatedobject.placements import overrides_of
from federation.planning.rendering.drift import is_subset

_ABSENT = object()


def is_imposed(federated: Mapping[str, Any], cluster: str, desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Return whether `live` lacks what the overrides set in `desired`, and a ClusterOverridePolicy is among them."""
    if not _has_cluster_wide(federated):
        return False
    patches = overrides_of(federated, names.OVERRIDE_CONTROLLER).get(cluster, ())
    return any(_is_missing(str(patch.get("path") or ""), desired, live) for patch in patches)


def changes_imposed(before: Mapping[str, Any], after: Mapping[str, Any], cluster: str) -> bool:
    """Return whether the overrides of an object in a cluster differ, and a ClusterOverridePolicy is among the new."""
    old, new = (overrides_of(each, names.OVERRIDE_CONTROLLER).get(cluster) for each in (before, after))
    return old != new and _has_cluster_wide(after)


def _has_cluster_wide(federated: Mapping[str, Any]) -> bool:
    """Return whether a ClusterOverridePolicy applies: its name has no namespace."""
    applied = (federated["metadata"].get("annotations") or {}).get(names.OVERRIDE_POLICIES) or ""
    return any("/" not in policy for policy in applied.split(",") if policy)


def _is_missing(path: str, desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Return whether the field at a path, or the list that it belongs to, differs."""
    keys = tuple(itertools.takewhile(lambda key: not _is_of_list(key), parse_pointer(path)))
    wanted, found = _value_at(desired, keys), _value_at(live, keys)
    if wanted is _ABSENT or found is _ABSENT:
        return wanted is not found
    return not is_subset(wanted, found, field=keys[-1] if keys else "")


def _is_of_list(key: str) -> bool:
    """Return whether a key of a pointer may be a position in a list, whose items a member may order otherwise."""
    return key == "-" or key.lstrip("-").isdigit()


def _value_at(obj: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if not isinstance(obj, Mapping) or key not in obj:
            return _ABSENT
        obj = obj[key]
    return obj
