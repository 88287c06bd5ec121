"""Pods that have a subset and no node yet: they need free capacity that the sums of nodes do not show. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.features.workloadspread.rules.ledger import CREATING, parse_match
from federation.features.workloadspread.rules.references import object_name
from federation.features.workloadspread.rules.subsets import name_of
from federation.planning.automigration.podanalysis import is_live


def count_waiting(spread: Mapping[str, Any], subset: str, pods: Iterable[Mapping[str, Any]]) -> int:
    """Return how many pods of a subset have no node: live ones without, and records whose pods are not in `pods`.

    `pods` are those of the namespace that an informer has.
    """
    waiting, seen = 0, set()
    for pod in pods:
        match = parse_match(pod)
        if match is None or (match.spread, match.subset) != (object_name(spread), subset):
            continue
        seen.add(match.uid or object_name(pod))
        waiting += is_live(pod) and not (pod.get("spec") or {}).get("nodeName")
    versions = (spread.get("status") or {}).get("versionedSubsetStatuses") or {}
    statuses = [status for entry in versions.values() for status in entry or () if name_of(status) == subset]
    return waiting + sum(pod_id not in seen for status in statuses for pod_id in status.get(CREATING) or ())
