"""When a placement that was made without some clusters, which could not have the object then, is completed. Pure.

The marks are an annotation of the federated object, which is the memory after a restart.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from federation.api import names
from federation.planning.failover.halts import state_of
from federation.planning.failover.returning import has_taint_of_ours


class Completion(NamedTuple):
    """Whether the placement is decided again now, and otherwise in how many seconds it may be; None for an event."""

    is_due: bool = False
    wait_s: float | None = None


def missing_clusters(federated: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters that the object is marked with."""
    text = ((federated.get("metadata") or {}).get("annotations") or {}).get(names.PLACED_WITHOUT)
    return frozenset(name for name in str(text or "").split(",") if name)


def to_annotation(marks: Iterable[str]) -> str | None:
    """Return the annotation with these clusters, None without any."""
    return ",".join(sorted(marks)) or None


def plan_completion(
    marks: Iterable[str],
    cluster_of: Callable[[str], Mapping[str, Any] | None],
    kind: tuple[str, str],
    now: datetime,
    *,
    stable_s: float,
) -> Completion:
    """Return when to decide about the object again; `kind` is its API version and kind.

    Clusters that return together count together: while one of those that are ready is not stable yet, the others wait.
    One that stays away, or does not serve the kind, delays no other one.
    """
    waits_s, is_due = [], False
    for name in marks:
        cluster = cluster_of(name)
        if cluster is None:
            is_due = True  # it will never be there
            continue
        state = state_of(cluster)
        if state is None or not state.is_ready or has_taint_of_ours(cluster) or not _serves(cluster, kind):
            continue  # an event says when that changes
        # No longer than all of it: a time of a wrong clock is corrected meanwhile.
        left_s = min((state.since + timedelta(seconds=stable_s) - now).total_seconds(), stable_s)
        is_due = is_due or left_s <= 0
        waits_s += [left_s] if left_s > 0 else []
    return Completion(wait_s=max(waits_s)) if waits_s else Completion(is_due)


def _serves(cluster: Mapping[str, Any], kind: tuple[str, str]) -> bool:
    group, _, version = kind[0].rpartition("/")
    wanted = (group, version, kind[1])
    served = (cluster.get("status") or {}).get("apiResourceTypes") or ()
    return any((each.get("group") or "", each.get("version"), each.get("kind")) == wanted for each in served)
