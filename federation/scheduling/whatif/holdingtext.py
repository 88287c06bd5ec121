"""Sentences about a changed freeze or suspension for plans: its clusters, objects and time. Pure."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from federation.api.resources import CHANGE_FREEZES, FEDERATED_CLUSTERS
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Resource
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.freezes.changefreeze import Change, compile_freeze
from federation.planning.freezes.suspension import compile_suspension
from federation.planning.windows import next_opening
from federation.scheduling.whatif.holding import HOLDING
from federation.scheduling.whatif.state import ObjectChange, ObjectSet

_NAMED_MAX = 5


def describe_holding(change: ObjectChange, objects: ObjectSet, now: datetime) -> str:
    """Return which clusters and how many objects a changed freeze or suspension is about, "" for another change."""
    if change.resource not in HOLDING or change.after is None:
        return ""
    holds, when = _concerns_of(change.after, change.resource, now)
    clusters, count = set[str](), 0
    for federated in objects.federated():
        template = federated["spec"].get("template") or {}
        found = [
            cluster
            for cluster in effective_placement(federated)
            if (known := objects.get(FEDERATED_CLUSTERS, "", cluster)) is not None
            and holds(template, str(federated["metadata"].get("namespace") or ""), cluster, known)
        ]
        clusters |= set(found)
        count += bool(found)
    listed = ", ".join(sorted(clusters)[:_NAMED_MAX]) + (", …" if len(clusters) > _NAMED_MAX else "")
    return f"{change} is about {count} placed objects{f' in {listed}' if listed else ''}; {when}"


_Concerns = Callable[[Mapping[str, Any], str, str, Mapping[str, Any]], bool]


def _concerns_of(source: Mapping[str, Any], resource: Resource, now: datetime) -> tuple[_Concerns, str]:
    """Return what it is about: by template, namespace, cluster and FederatedCluster; and a sentence about its time."""
    if resource != CHANGE_FREEZES:
        suspension = compile_suspension(source)
        is_over = suspension.until is not None and suspension.until <= now
        return (
            lambda template, namespace, cluster, known: suspension.concerns(
                template, namespace, cluster, known["metadata"].get("labels") or {}
            ),
            "it is over" if is_over else suspension.message,
        )
    freeze = compile_freeze(source)
    end = freeze.end(now)
    opening = min((at for each in freeze.windows if (at := next_opening(each, now)) is not None), default=None)
    changes = ", ".join(sorted(freeze.holds))
    when = freeze.end_text(end) if end is not None else f"from {to_rfc3339(opening)}" if opening else "at no time"
    return (
        lambda template, namespace, _, known: any(
            freeze.concerns(namespace, str(template["metadata"]["name"]), known["metadata"].get("labels") or {}, each)
            for each in Change
        ),
        f"it holds {changes} {when}",
    )
