"""How many clusters can take a unit, and why the others cannot, in one line."""

from collections import Counter
from collections.abc import Mapping

from federation.scheduling.framework.cycle import FilterResult
from federation.scheduling.framework.types import Status
from federation.scheduling.snapshot import Snapshot

_AVAILABILITIES_MAX = 64
"""Cache size. With more summaries of filter results they are cleared."""
_REASONS_MAX = 10
"""Distinct reasons in the one-line summary; the explanation has all of them."""


def availability(snapshot: Snapshot, filtered: FilterResult | None) -> str:
    """Return "2/3 clusters are available: 1 cluster(s) were unready", reasons counted and in a fixed order."""
    rejected: Mapping[str, Status] = filtered.rejected if filtered else {}
    available = len(filtered.feasible) if filtered else 0
    if not rejected:
        return f"{available}/{len(snapshot.clusters)} clusters are available"
    # Most filter results are shared by many units. The entry holds the statuses, so that their id is not used again.
    known = snapshot.lasting.setdefault("availability", {})
    entry: tuple[Mapping[str, Status], str] | None = known.get((id(rejected), available))
    if entry is None:
        if len(known) >= _AVAILABILITIES_MAX:
            known.clear()
        entry = known[id(rejected), available] = rejected, _availability(snapshot, rejected, available)
    return entry[1]


def _availability(snapshot: Snapshot, rejected: Mapping[str, Status], available: int) -> str:
    counts: dict[str, int] = {}
    statuses = {id(status): status for status in rejected.values()}
    for which, times in Counter(map(id, rejected.values())).items():
        for reason in statuses[which].reasons or (f"filtered by {statuses[which].plugin}",):
            counts[reason] = counts.get(reason, 0) + times
    text = f"{available}/{len(snapshot.clusters)} clusters are available"
    reasons = sorted(f"{count} {reason}" for reason, count in counts.items())
    if len(reasons) > _REASONS_MAX:
        reasons[_REASONS_MAX:] = [f"and {len(reasons) - _REASONS_MAX} other reasons"]
    return f"{text}: {', '.join(reasons)}" if reasons else text
