"""Generated names: federated objects, imported slices, derived services, aggregated items (spec §0.6).

Every name is derived from what it stands for, so that a restart, another replica or KubeAdmiral itself finds the same
object again. Whatever is too long keeps its beginning and ends in the hash of the whole. No I/O; `hashing.py` holds the
hash; `controllers/federate` is the main reader.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from federation.api import names
from federation.planning.hashing import fnv1_32

NAME_LENGTH_MAX = 253
LABEL_VALUE_LENGTH_MAX = 63
_POSSIBLE_PREFIX_LENGTH = 243

_FORBIDDEN = re.compile(rb"[^a-z0-9.-]")
_DOTS = re.compile(rb"\.\.+")


def _fit(name: str, length_max: int) -> str:
    """Return the name, or its beginning and the hash of the whole when it is too long."""
    if len(name) <= length_max:
        return name
    digits = str(fnv1_32(name))
    return f"{name[: length_max - len(digits) - 1]}-{digits}"


@lru_cache(maxsize=8192)
def federated_object_name(source_name: str, type_name: str) -> str:
    """Return the name of the federated object of a source object; `type_name` is its FederatedTypeConfig's name.

    Names that Kubernetes allows for the source but not for ours (RBAC: `system:foo`) are transformed and get the hash
    of the original, so that two sources never share a federated object.
    """
    transformed = _transform(source_name)
    name = f"{transformed}-{type_name}"
    if transformed != source_name:
        name = f"{name}-{fnv1_32(source_name)}"
    return _fit(name, NAME_LENGTH_MAX)


def _transform(name: str) -> str:
    lowered = bytes(b + 32 if 65 <= b <= 90 else b for b in name.encode())
    return _DOTS.sub(b".", _FORBIDDEN.sub(b".", lowered)).decode("ascii")


def imported_endpoint_slice_name(cluster: str, name: str) -> str:
    """Return the name under which a member's EndpointSlice is imported."""
    return _fit(f"imported-{cluster}-{name}", NAME_LENGTH_MAX)


def derived_service_object_name(service: str) -> str:
    """Return the name of the federated object that holds the Service derived from a ServiceImport."""
    return _fit(f"derived-{service}-services", NAME_LENGTH_MAX)


def source_cluster_label_value(cluster: str) -> str:
    """Return the cluster's name as a label value (at most 63 characters)."""
    return _fit(cluster, LABEL_VALUE_LENGTH_MAX)


def aggregated_name(cluster: str, raw_name: str) -> str:
    """Return the name that an item of a member carries in a list merged over all clusters."""
    return federated_object_name(cluster, raw_name)


def possible_clusters(clusters: Iterable[str], name: str) -> list[str]:
    """Return the clusters that may own the aggregated name; several when one cluster's name begins another's."""
    return [
        cluster
        for cluster in clusters
        if len(cluster) <= len(name)
        and (
            name.startswith(cluster)
            or (len(cluster) >= _POSSIBLE_PREFIX_LENGTH and name.startswith(cluster[:_POSSIBLE_PREFIX_LENGTH]))
        )
    ]


def to_aggregated_object(obj: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    """Return the member's object renamed for a merged list, its cluster and own name kept in annotations."""
    metadata = obj.get("metadata") or {}
    raw_name = str(metadata.get("name", ""))
    annotations = {**(metadata.get("annotations") or {}), names.CLUSTER: cluster, names.RAW_NAME: raw_name}
    return {
        **obj,
        "metadata": {**metadata, "name": aggregated_name(cluster, raw_name), "annotations": annotations},
    }


def to_aggregated_pod(pod: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    """Return the pod as `to_aggregated_object` does, its node renamed in the same way."""
    result = to_aggregated_object(pod, cluster)
    spec = pod.get("spec") or {}
    if node := spec.get("nodeName"):
        result["spec"] = {**spec, "nodeName": aggregated_name(cluster, node)}
    return result
