"""Reports of corrected drift: each correction counts, and each burst emits one Event.

What counts as a correction, and when corrections pause, is in `rules`; the record of a member object has its last
corrections. `memberoperations.py` reports each correction that was made.
"""

from prometheus_client import Counter

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.rules import names
from federation.delivery.rules.corrections import Correction
from federation.delivery.rules.memberrecord import MemberKey
from federation.planning.drift.fights import CORRECTIONS_MAX, WINDOW_S
from federation.planning.status.delivery import describe_drift
from federation.runtime.events import NORMAL, WARNING, Recorder

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
REPORTS_PER_MINUTE = 60
"""Events about drift in one cluster. The metric counts everything."""


class DriftReports:
    """Reports corrections and owners of replicas on the user's objects."""

    def __init__(self, records: MemberRecords, recorder: Recorder, clock: Clock, kept: KeptState) -> None:
        self._records = records
        self._recorder = recorder
        self._clock = clock
        self._reports: dict[str, tuple[float, int]] = kept.by_cluster({})
        """The reports of the current minute by cluster: when it began, and their number."""

    def record(self, federated: Object, key: MemberKey, correction: Correction) -> None:
        """Count a correction, and tell users when it is news."""
        news = self._records.record_correction(key, correction)
        _corrected.labels(key.cluster, key.resource.kind).inc()
        if news.begins_pause:
            _paused.labels(key.cluster, key.resource.kind).inc()
        drift = self._records.drift(key)
        if drift is None or not (news.begins_burst or news.begins_fight) or not self._may_report(key.cluster):
            return
        where = f'cluster "{key.cluster}": {describe_drift(drift)}'
        if news.begins_burst:
            self._recorder.event(federated, NORMAL, names.EVENT_DRIFT_CORRECTED, f"{where}; it was corrected")
        if news.begins_fight:
            text = (
                f"{where}, more than {CORRECTIONS_MAX} times within {WINDOW_S / 60:.0f} minutes. Corrections in this "
                f"cluster pause until {drift.paused_until}, and longer each time; changes of the template are "
                "delivered at once. Stop the other writer, or leave the field out of the template and the overrides"
            )
            self._recorder.event(federated, WARNING, names.EVENT_CORRECTION_PAUSED, text)

    def report_scaler(self, federated: Object, cluster: str, before: str, after: str) -> None:
        """Tell users that an autoscaler in a member owns the replicas from now on, or owns them no more."""
        owner = f'HorizontalPodAutoscaler "{after or before}"'
        if after:
            reason, what = names.EVENT_REPLICAS_HANDED_OVER, f"{owner} owns the replicas from now on"
        else:
            reason, what = names.EVENT_REPLICAS_TAKEN_BACK, f"{owner} is gone; the replicas are the federation's again"
        self._recorder.event(federated, NORMAL, reason, f'cluster "{cluster}": {what}')

    def _may_report(self, cluster: str) -> bool:
        """Count a report; return whether it is within the limit."""
        now_s = self._clock.monotonic()
        begun_s, count = self._reports.get(cluster, (now_s, 0))
        if now_s - begun_s >= 60.0:
            begun_s, count = now_s, 0
        self._reports[cluster] = begun_s, count + 1
        return count < REPORTS_PER_MINUTE
