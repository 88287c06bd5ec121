"""Simulate the placement of a pod on the known nodes of one cluster, before the pod exists. Pure.

A node fits if it admits the pod's node selector, required node affinity and tolerations, and has free resources for its
requests. Affinity between pods, topology spread, volumes and ports are not simulated, so the answer may be too
optimistic: a pod that no node takes is still moved later.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery.selectors import SelectorError
from federation.planning.clusters.clusterresources import Collector
from federation.scheduling import names
from federation.scheduling.podrequest import shape_of


def fits_nodes(pod: Mapping[str, Any], nodes: Collector, waiting: int = 0) -> bool:
    """Return True if the pod fits on the nodes beside `waiting` pods like it that have no node yet.

    A virtual node that admits the pod always fits. Cordoned and unready nodes never fit. A pod with malformed node
    affinity fits nowhere.
    """
    shape = shape_of({**pod, "kind": "Pod"})
    if shape is None:
        return False
    has_virtual = False

    def admit(name: str, labels: Mapping[str, str], taints: Iterable[tuple[str, str, str]]) -> bool:
        nonlocal has_virtual
        if not shape.needs.admit(name, labels, taints):
            return False
        has_virtual = has_virtual or _is_virtual(labels, taints)
        return True

    try:
        return nodes.count_fitting(shape.request, admit) > waiting or has_virtual
    except SelectorError:
        return False


def _is_virtual(labels: Mapping[str, str], taints: Iterable[tuple[str, str, str]]) -> bool:
    label, value = names.VIRTUAL_NODE_TYPE
    return labels.get(label) == value or any(key == names.VIRTUAL_NODE_TAINT for key, _, _ in taints)
