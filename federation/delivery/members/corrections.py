"""Counts and reports corrections of member objects that were changed in the member; pauses them in a fight.

The decision is in `planning/drift/fights.py`. Everything is in memory and bounded per cluster, so that one hostile
member costs the others nothing; a restart begins with nothing. There is one instance per control plane.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from prometheus_client import Counter

from federation.api import names
from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.resources import Object
from federation.delivery.members.expectations import MemberKey
from federation.delivery.members.operations import Correction
from federation.planning.drift.fields import Author
from federation.planning.drift.fights import Burst, after_correction, is_over, pause_left_s
from federation.planning.status.delivery import Drift

_corrected = Counter(
    "federation_dispatch_drift_corrections_total",
    "Corrections of objects that somebody in a member had changed",
    ["cluster", "kind"],
)
_paused = Counter(
    "federation_dispatch_drift_pauses_total",
    "Pauses of corrections that somebody in a member undoes again and again",
    ["cluster", "kind"],
)

OBJECTS_MAX = 10_000
"""Objects per cluster whose corrections are remembered; some 10 MB."""
WRITTEN_MAX = 1_000
"""Objects per cluster whose last written content is remembered; those that somebody fights over are the latest."""
REPORTS_PER_MINUTE = 60
"""Events about drift in one cluster. The metric counts everything."""
_KEPT_S = 3600.0
"""How long a correction is shown."""


@dataclass(slots=True)
class _Drift:
    burst: Burst
    fields: tuple[str, ...]
    author: Author | None
    first: datetime
    last: datetime


class Report(NamedTuple):
    """Whether a correction needs an event: because a burst of drift began with it, or a fight."""

    begins_burst: bool = False
    begins_fight: bool = False


class _Cluster:
    def __init__(self) -> None:
        self.written: OrderedDict[MemberKey, str] = OrderedDict()
        self.drifts: OrderedDict[MemberKey, _Drift] = OrderedDict()
        self.minute_s = 0.0
        self.reports = 0

    def may_report(self, now_s: float) -> bool:
        """Count a report; return whether it is within the limit."""
        if now_s - self.minute_s >= 60.0:
            self.minute_s, self.reports = now_s, 0
        self.reports += 1
        return self.reports <= REPORTS_PER_MINUTE


class Corrections:
    """The corrections of the last hour by member object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clusters: dict[str, _Cluster] = {}

    def is_correction(self, key: MemberKey, digest: str, live: Object | None) -> bool:
        """Return whether content that differs from the live object (None when it is gone) was applied before.

        The hash on the object tells that also after a restart. Somebody who changes the hash too is recognised by the
        content of our last write.
        """
        annotations = live["metadata"].get("annotations") if live is not None else None
        if (annotations or {}).get(names.TEMPLATE_HASH) == digest:
            return True
        cluster = self._clusters.get(key.cluster)
        return cluster is not None and cluster.written.get(key) == digest

    def record_write(self, key: MemberKey, digest: str) -> None:
        """Record the content of a successful write."""
        written = self._clusters.setdefault(key.cluster, _Cluster()).written
        written[key] = digest
        written.move_to_end(key)
        if len(written) > WRITTEN_MAX:
            written.popitem(last=False)

    def record(self, key: MemberKey, correction: Correction) -> Report:
        """Count a correction; return what is new about it."""
        now_s, now = self._clock.monotonic(), self._clock.now()
        cluster = self._clusters.setdefault(key.cluster, _Cluster())
        before = cluster.drifts.pop(key, None)
        fields = tuple(field.name for field in correction.fields)
        burst = after_correction(before.burst if before is not None else None, fields, now_s)
        is_new = before is None or is_over(before.burst, now_s)
        author = correction.author or (before.author if before is not None and not is_new else None)
        cluster.drifts[key] = _Drift(burst, fields, author, now if before is None or is_new else before.first, now)
        while len(cluster.drifts) > OBJECTS_MAX:
            cluster.drifts.popitem(last=False)
        _corrected.labels(key.cluster, key.resource.kind).inc()
        pauses_before = 0 if before is None or is_new else before.burst.pauses
        if burst.pauses > pauses_before:
            _paused.labels(key.cluster, key.resource.kind).inc()
        begins_fight = burst.pauses > pauses_before == 0
        if not (is_new or begins_fight) or not cluster.may_report(now_s):
            return Report()
        return Report(is_new, begins_fight)

    def pause_left_s(self, key: MemberKey) -> float:
        """Return for how many seconds the object must not be corrected, 0 when it may be."""
        known = self._find(key)
        return pause_left_s(known.burst if known is not None else None, self._clock.monotonic())

    def find(self, key: MemberKey) -> Drift | None:
        """Return the drift of an object within the last hour, None without any."""
        known = self._find(key)
        now_s = self._clock.monotonic()
        if known is None or now_s - max(known.burst.last_s, known.burst.paused_until_s) > _KEPT_S:
            return None
        left_s = pause_left_s(known.burst, now_s)
        author = known.author or Author("", "", "")
        return Drift(
            fields=list(known.fields),
            manager=author.manager,
            operation=author.operation,
            time=author.time,
            corrections=known.burst.count,
            since=to_rfc3339(known.first),
            last=to_rfc3339(known.last),
            paused_until=to_rfc3339(self._clock.now() + timedelta(seconds=left_s)) if left_s > 0 else "",
        )

    def forget(self, key: MemberKey) -> None:
        """Forget an object that we removed: delivering it again is no correction."""
        cluster = self._clusters.get(key.cluster)
        if cluster is not None:
            cluster.written.pop(key, None)
            cluster.drifts.pop(key, None)

    def forget_cluster(self, cluster: str) -> None:
        """Forget a cluster that left or was replaced."""
        self._clusters.pop(cluster, None)

    def _find(self, key: MemberKey) -> _Drift | None:
        cluster = self._clusters.get(key.cluster)
        return None if cluster is None else cluster.drifts.get(key)
