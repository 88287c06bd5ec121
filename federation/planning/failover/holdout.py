"""How long a cluster that is ready again keeps its taints, because it was lost several times in a row. Pure.

The first return is free. From the second loss on, each one doubles the time that the cluster must stay ready before its
taints are removed, up to a maximum. A cluster that stays ready for `calm_s` starts from the beginning. The record is
an annotation of the FederatedCluster, written together with the taints, so a restart does not forget it; but a loss
that came with the restart holds no cluster out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord, Time, to_time

_COUNT_MAX = 64
"""Losses beyond this are not counted; the hold-out has long reached its maximum."""


@dataclass(frozen=True, slots=True)
class HoldoutOptions:
    """How long flapping clusters are held out."""

    base_s: float = 60.0
    """How long a cluster must be ready after its second loss in a row."""
    max_s: float = 3600.0
    """The longest hold-out."""
    calm_s: float = 3600.0
    """Losses farther apart than this, counted from the end of the hold-out, do not count together."""
    startup_s: float = 60.0
    """A loss before the control plane has run for this time holds no cluster out."""


class Losses(msgspec.Struct, frozen=True, rename="camel"):
    """How often in a row a cluster was lost, and when it was lost last."""

    count: Annotated[int, msgspec.Meta(ge=1)]
    lost_at: Time


_LOSSES = AnnotationRecord(names.LOSSES, Losses)


def losses_of(cluster: Mapping[str, Any]) -> Losses | None:
    """Return the record of a FederatedCluster, None without one."""
    found = _LOSSES.of(cluster)
    return None if found is None else Losses(min(found.count, _COUNT_MAX), found.lost_at)


def losses_text(losses: Losses) -> str:
    """Return the value of the annotation `names.LOSSES`."""
    return _LOSSES.text(Losses(losses.count, to_time(losses.lost_at)))


def after_loss(before: Losses | None, now: datetime, options: HoldoutOptions) -> Losses:
    """Return the record after a loss at `now`."""
    if before is None or now - before.lost_at > timedelta(seconds=holdout_s(before, options) + options.calm_s):
        return Losses(1, now)
    return Losses(min(before.count + 1, _COUNT_MAX), now)


def next_losses(
    cluster: Mapping[str, Any], before: Losses | None, lost_since: datetime, key: str, options: HoldoutOptions
) -> Losses | None:
    """Return the record to write for a cluster that is not ready since `lost_since`; None if it is a known loss.

    `key` is the key of the health taint for its condition. A cluster that is held out still has its taint: then it was
    ready in between if the condition is newer than the last loss. With another key it may as well have changed from not
    ready to unreachable, which is no further loss.
    """
    present = {taint.get("key") for taint in (cluster.get("spec") or {}).get("taints") or ()}
    if before is not None and not present.isdisjoint(names.HEALTH_TAINTS):
        is_new = key in present and lost_since > before.lost_at
    else:
        is_new = before is None or lost_since > before.lost_at
    return after_loss(before, lost_since, options) if is_new else None


def holdout_s(losses: Losses | None, options: HoldoutOptions) -> float:
    """Return how long the cluster must be ready without a break before its taints are removed, in seconds."""
    if losses is None or losses.count <= 1:
        return 0.0
    return min(options.base_s * 2.0 ** (losses.count - 2), options.max_s)


def is_of_restart(losses: Losses, started_at: datetime, options: HoldoutOptions, *, was_ready: bool) -> bool:
    """Return whether the last loss says nothing about the member: the control plane was down or had just started.

    Members that stop or start together with it seem lost each time, and nothing would be placed for minutes. A cluster
    that had returned before the restart, so that it `was_ready` at the first look, is still held out. Times do not
    tell: those of conditions have whole seconds.
    """
    if was_ready and losses.lost_at <= started_at:
        return False
    return started_at >= losses.lost_at - timedelta(seconds=options.startup_s)


def held_out_until(losses: Losses | None, ready_since: datetime, options: HoldoutOptions) -> datetime:
    """Return when the taints may be removed; `ready_since` is the last transition of condition Ready to True."""
    return ready_since + timedelta(seconds=holdout_s(losses, options))
