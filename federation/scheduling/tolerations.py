"""For how long a unit tolerates the NoExecute taints of a cluster, with Kubernetes' meaning of `tolerationSeconds`.

The time runs from the taint's `timeAdded`. Of several tolerations that match a taint, the first counts. A taint without
`timeAdded`, and a toleration without seconds, have no end. A policy without its own toleration for clusters that
are not ready or unreachable tolerates them for a default time. Pure: the caller brings `now`.

Reference: docs/reference/scheduling.md.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from federation.api import names
from federation.scheduling.framework.types import Cluster, Effect, Taint, Toleration

_KEYS = (names.TAINT_NOT_READY, names.TAINT_UNREACHABLE)


def with_defaults(tolerations: tuple[Toleration, ...], default_s: int | None) -> tuple[Toleration, ...]:
    """Return the tolerations with a default for clusters that are not ready or unreachable; None adds none.

    A toleration of the policy for the key, or for all keys, takes precedence if it covers NoExecute.
    """
    if default_s is None:
        return tolerations
    covering = [toleration for toleration in tolerations if toleration.effect in ("", Effect.NO_EXECUTE)]
    if any(not toleration.key for toleration in covering):
        return tolerations
    own = {toleration.key for toleration in covering}
    return (*tolerations, *(_default(key, default_s) for key in _KEYS if key not in own))


def toleration_end(tolerations: Sequence[Toleration], cluster: Cluster) -> tuple[datetime, Taint] | None:
    """Return when the first toleration of the cluster's NoExecute taints ends, and the taint; None for no end.

    Taints that are not tolerated at all do not count.
    """
    ends = []
    for taint, added in cluster.taint_times.items():
        matching = next((toleration for toleration in tolerations if toleration.tolerates(taint)), None)
        if matching is not None and matching.seconds is not None:
            ends.append((_after(added, max(0, matching.seconds)), taint))
    return min(ends, default=None)


def ended_tolerations(
    tolerations: Sequence[Toleration], clusters: Iterable[Cluster], now: datetime
) -> dict[str, Taint]:
    """Return the clusters whose taints are not tolerated any more, each with the taint."""
    ends = ((cluster.name, toleration_end(tolerations, cluster)) for cluster in clusters)
    return {name: end[1] for name, end in ends if end is not None and end[0] <= now}


def is_emptied(cluster: Cluster, tolerations: Sequence[Toleration]) -> bool:
    """Return whether an administrator removes the cluster, or drains it and the drain is not tolerated."""
    drains = [each for each in cluster.taints if each.key == names.TAINT_DRAIN and each.effect == Effect.NO_EXECUTE]
    return cluster.is_terminating or any(not any(own.tolerates(each) for own in tolerations) for each in drains)


def _default(key: str, seconds: int) -> Toleration:
    return Toleration(key, "Exists", "", Effect.NO_EXECUTE, seconds)


def _after(added: datetime, seconds: int) -> datetime:
    try:
        return added + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=added.tzinfo)
