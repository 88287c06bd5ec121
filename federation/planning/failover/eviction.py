"""The placement while only some replicas may leave or return: a scheduling decision, less the moves that wait. Pure.

Placements are cluster → replicas; None stands for the replicas of the template (Duplicate mode). A decision without the
clusters that replicas leave is `after`; nothing here places a replica where the decision does not.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

Placement = Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Eviction:
    """The written result: the placement, the replicas that leave by cluster, and those that stay there."""

    placement: dict[str, int | None]
    moved: dict[str, int] = field(default_factory=dict)
    stays: dict[str, int] = field(default_factory=dict)


def is_divided(before: Placement, after: Placement) -> bool:
    """Return whether every number of both placements is given."""
    return None not in before.values() and None not in after.values()


def movable(
    before: Placement, after: Placement, leaving: Collection[str], excess: Mapping[str, int], replicas: int
) -> int:
    """Return how many replicas leave the clusters `leaving` for others that can hold them.

    `excess` are the replicas by cluster that the decision places beyond its capacity: what does not fit does not
    leave. Copies (`replicas` each) leave as a whole: the number is that of the pods that start elsewhere, at least 1.
    """
    lost = sum(_count(before, name) - _count(after, name) for name in leaving)
    if is_divided(before, after):
        return max(0, min(lost, sum(_gains(before, after, leaving, excess).values())))
    return max(1, replicas * len(after.keys() - before.keys())) if leaving else 0


def evict(
    before: Placement,
    after: Placement,
    leaving: Collection[str],
    granted: Mapping[str, int],
    *,
    excess: Mapping[str, int],
    unplaced: int = 0,
    clusters_max: int | None = None,
) -> Eviction:
    """Return the eviction of `granted` replicas by cluster; those of other clusters in `leaving` stay.

    `unplaced` are the replicas that the decision has no place for. Staying replicas take their place first, and then
    that of the decision's new replicas, so that no more are placed than before or than wanted. Copies leave a cluster
    if anything was granted for it.
    """
    if not is_divided(before, after):
        return _evict_copies(before, after, leaving, granted, clusters_max)
    losses = {name: _count(before, name) - _count(after, name) for name in sorted(leaving)}
    moved = {name: min(granted.get(name, 0), loss) for name, loss in losses.items()}
    gains = _gains(before, after, leaving, {})
    most = max(0, sum(gains.values()) - sum(moved.values())) + max(0, unplaced)
    stays: dict[str, int] = {}
    for name, loss in losses.items():
        stays[name] = min(loss - moved[name], most)
        most -= stays[name]
    placement = dict(after) | {name: _count(after, name) + count for name, count in stays.items() if count}
    trimmed = max(0, sum(stays.values()) - max(0, unplaced))
    # Replicas beyond the capacity are removed first: they would only wait there.
    for name in sorted(gains, key=lambda each: (-excess.get(each, 0), -gains[each], each)):
        taken = min(trimmed, gains[name])
        trimmed -= taken
        _set(placement, before, name, _count(after, name) - taken)
    return Eviction(placement, _positive(moved), _positive(stays))


def without_replacements(before: Placement, after: Placement, stays: Collection[str]) -> Placement:
    """Return the decision with the copies in the clusters `stays`, and without what replaces them elsewhere.

    These copies have the volumes: others would start on empty ones. As many as the decision adds may start. What is
    divided before and after is returned as it is.
    """
    if is_divided(before, after):
        return after
    further = [name for name in sorted(after) if name not in before and after[name] is None]
    added = further[: max(0, len(after) - len(before))]
    kept = {name: count for name, count in after.items() if name in before or name in added}
    return {name: before[name] for name in stays} | kept


def return_batch(
    before: Placement, ideal: Placement, allowed: Mapping[str, int], clusters_max: int | None = None
) -> dict[str, int | None]:
    """Return the present placement with up to `allowed` replicas moved to each cluster, no farther than `ideal`.

    Replicas come from clusters that have more than the ideal, from the one with the largest surplus first. A cluster
    that would be one more than `clusters_max` gets none, unless all replicas return to it: then they do at once.
    """
    placement = dict(before)
    if not is_divided(before, ideal):
        return placement
    for name in sorted(allowed):
        if clusters_max is not None and len(placement.keys() | {name}) > max(clusters_max, len(placement)):
            total = sum(_count(placement, other) for other in placement)
            if allowed[name] and total and ideal == {name: total}:
                return dict(ideal)
            continue
        lacking = min(allowed[name], _count(ideal, name) - _count(placement, name))
        surplus = {
            other: _count(placement, other) - _count(ideal, other) for other in placement.keys() - allowed.keys()
        }
        for other in sorted(surplus, key=lambda each: (-surplus[each], each)):
            if (count := min(lacking, surplus[other])) > 0:
                placement[other] = _count(placement, other) - count
                placement[name] = _count(placement, name) + count
                lacking -= count
    return {name: count for name, count in placement.items() if count or name in ideal}


def without_returns(
    before: Placement,
    after: Placement,
    allowed: Mapping[str, int],
    rejected: Collection[str] = (),
    clusters_max: int | None = None,
) -> dict[str, int | None]:
    """Return the decision with at most `allowed` replicas moved from other clusters to each of these; others follow it.

    New replicas are no moves, nor are those of a cluster that the decision rejected: they may go there. Where a part
    would be in more than `clusters_max` clusters, all of them return as soon as some may.
    """
    placement = dict(after)
    if not is_divided(before, after):
        return placement
    for name in sorted(allowed):
        stays = [other for other in before if other not in rejected and _count(before, other) > _count(after, other)]
        if allowed[name] and clusters_max is not None and len(after.keys() | set(stays)) > clusters_max:
            continue
        held = _count(after, name) - _count(before, name) - allowed[name]
        losses = {other: _count(before, other) - _count(placement, other) for other in before if other not in rejected}
        for other in sorted(losses, key=lambda each: (-losses[each], each)):
            if (count := min(held, losses[other])) > 0:
                placement[other] = _count(placement, other) + count
                _set(placement, before, name, _count(placement, name) - count)
                held -= count
    return placement


def _evict_copies(
    before: Placement, after: Placement, leaving: Collection[str], granted: Mapping[str, int], clusters_max: int | None
) -> Eviction:
    stays = [name for name in sorted(leaving) if not granted.get(name)]
    placement = dict(after) | {name: before[name] for name in stays}
    for name in sorted(after.keys() - before.keys(), reverse=True):
        if clusters_max is not None and len(placement) > clusters_max:
            del placement[name]
    moved = {name: granted[name] for name in sorted(leaving) if granted.get(name)}
    return Eviction(placement, moved, dict.fromkeys(stays, 1))


def _gains(before: Placement, after: Placement, leaving: Collection[str], excess: Mapping[str, int]) -> dict[str, int]:
    """Return the further replicas of each cluster that gets some within its capacity."""
    gains = {
        name: _count(after, name) - _count(before, name) - max(0, excess.get(name, 0))
        for name in after
        if name not in leaving
    }
    return _positive(gains)


def _set(placement: dict[str, int | None], before: Placement, name: str, count: int) -> None:
    """Set the replicas of a cluster; one that had none and gets none is not placed."""
    if count or name in before:
        placement[name] = count
    else:
        placement.pop(name, None)


def _count(placement: Placement, name: str) -> int:
    return placement.get(name) or 0


def _positive(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count > 0}
