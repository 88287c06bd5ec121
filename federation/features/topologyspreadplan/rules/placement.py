"""The member clusters of a StatefulSet whose pods are assigned to zones of several clusters. Pure.

The scheduler divides by cluster and could place several pods of a shard in one of them. So the plan places each
StatefulSet by annotations: the clusters of its zones, with as many pods at most as it has zones there. Placements that
a user wrote are kept; if they contradict the plan, that is a problem.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from federation.api import names
from federation.features.topologyspreadplan.rules.planner import Plan

_LIMIT = "maxReplicas"
"""A preference that every placement of a plan has."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The annotations that the plan writes, and why the present ones contradict it, "" if they do not."""

    annotations: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def plan_placement(plan: Plan, shard: int, present: Mapping[str, str]) -> Placement:
    """Return the placement of a shard by number; `present` are the annotations of its StatefulSet.

    A plan for one cluster and a StatefulSet beyond the declared number of shards are placed by their policy alone.
    """
    if len(plan.service.clusters) < 2 or shard >= len(plan.zones):
        return Placement()
    own = set(plan.zones[shard])
    shares = Counter(zone.cluster for zone in plan.service.zones if zone.name in own)
    given = _given_by_user(present)
    if given is None:
        entries = [
            {"cluster": cluster, "preferences": {"weight": 1, _LIMIT: count}} for cluster, count in shares.items()
        ]
        return Placement(
            {
                names.SCHEDULING_MODE: "Divide",
                names.MAX_CLUSTERS: str(len(shares)),
                names.PLACEMENTS: orjson.dumps(entries).decode(),
            }
        )
    if given.keys() == shares.keys() and all(given.values()):
        return Placement()
    wanted = ", ".join(sorted(shares))
    return Placement(problem=f"its annotation {names.PLACEMENTS} must name {wanted}, each with a weight, or be removed")


def _given_by_user(annotations: Mapping[str, str]) -> dict[str, bool] | None:
    """Return the clusters that a user placed a StatefulSet in, and which have a weight; None if no user did.

    What cannot be understood is no cluster.
    """
    text = annotations.get(names.PLACEMENTS)
    if text is None:
        return None
    try:
        entries = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return {}
    preferences: dict[str, dict[str, Any]] = {}
    for entry in entries:
        found = entry.get("preferences")
        preferences[str(entry.get("cluster"))] = found if isinstance(found, dict) else {}
    if preferences and all(_LIMIT in each for each in preferences.values()):
        return None
    return {cluster: "weight" in each for cluster, each in preferences.items()}


def has_annotations(present: Mapping[str, str], wanted: Placement) -> bool:
    """Return whether the StatefulSet has the annotations of its placement."""
    return wanted.annotations.items() <= present.items()
