"""Names of member objects on the host: `CLUSTER-NAME`, as KubeAdmiral's aggregated lists have them. Pure.

Annotations give the cluster and the name in the cluster. A name alone can have several meanings: "a-b-c" is pod "b-c"
of cluster "a" and pod "c" of cluster "a-b". So whoever resolves a name asks every possible cluster.
"""

from collections.abc import Iterable
from typing import Any

from federation.api import names
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import escape_field_value, parse_field_selector
from federation.planning.federatedobject.naming import NAME_LENGTH_MAX, bounded

_HASH_LENGTH_MAX = 11
"""A dash and the ten digits of a 32-bit hash."""
_KEPT_LENGTH_MIN = NAME_LENGTH_MAX - _HASH_LENGTH_MAX
"""How much of a name that was too long stands before the hash, at least."""
_NAMING_FIELDS = frozenset({"metadata.name", "spec.nodeName", "involvedObject.name"})


def merged_name(cluster: str, name: str) -> str:
    """Return the name on the host of a member's object; one that is too long ends in a hash."""
    return bounded(f"{cluster}-{name}", NAME_LENGTH_MAX)


def to_merged(cluster: str, obj: Object) -> Object:
    """Return a member's object as the host shows it; a pod's node gets a name of the same form."""
    metadata = obj["metadata"]
    origin = {names.MEMBER_CLUSTER: cluster, names.RAW_NAME: metadata["name"]}
    found = {
        **obj,
        "metadata": {
            **metadata,
            "name": merged_name(cluster, metadata["name"]),
            "annotations": {**(metadata.get("annotations") or {}), **origin},
        },
    }
    spec = obj.get("spec") or {}
    if isinstance(node := spec.get("nodeName"), str) and node:
        found["spec"] = {**spec, "nodeName": merged_name(cluster, node)}
    return found


def possible_clusters(clusters: Iterable[str], name: str) -> list[str]:
    """Return the clusters whose objects can have this name on the host.

    The hash can replace the end of a cluster's name, too. A name on the host is never shorter than that of its cluster.
    """
    return [
        cluster
        for cluster in clusters
        if name.startswith(cluster)
        or (_KEPT_LENGTH_MIN < len(cluster) <= len(name) and cluster.startswith(name[:_KEPT_LENGTH_MIN]))
    ]


def raw_name(cluster: str, name: str) -> str:
    """Return the name in the cluster, "" if none leads to this name or a hash has replaced its end."""
    rest = name.removeprefix(f"{cluster}-")
    return rest if rest != name and merged_name(cluster, rest) == name else ""


def is_hashed(name: str) -> bool:
    """Return whether the end of the name may be a hash, so that only a list of the cluster's objects resolves it."""
    return len(name) > _KEPT_LENGTH_MIN


def to_member_fields(cluster: str, field_selector: str) -> str | None:
    """Return a field selector for the cluster, None if it matches nothing there.

    The names of objects and of nodes are those on the host. A name whose end is a hash cannot be selected in a member.
    """
    terms: list[str] = []
    for term in parse_field_selector(field_selector):
        value: Any = term.value
        if term.field in _NAMING_FIELDS and value:
            value = raw_name(cluster, value)
            if not value and term.equal:
                return None
            if not value:
                continue
        terms.append(f"{term.field}{'=' if term.equal else '!='}{escape_field_value(value)}")
    return ",".join(terms)
