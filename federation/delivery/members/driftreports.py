"""What sync does about drift besides correcting it: tell users once per burst, and pause corrections in a fight.

`delivery/members/corrections.py` remembers the corrections. `clusterdispatch.py` asks before a correction, and
`memberoperations.py` reports each one that was made.
"""

from federation.api import names
from federation.apimachinery.resources import Object
from federation.delivery.members.corrections import Corrections
from federation.delivery.members.expectations import MemberKey
from federation.delivery.members.operations import Correction
from federation.delivery.members.propagation import Propagation
from federation.delivery.members.scalers import Scalers
from federation.delivery.rules.status import ClusterStatus
from federation.planning.drift.fights import CORRECTIONS_MAX, WINDOW_S
from federation.planning.status.delivery import describe_drift
from federation.runtime.events import NORMAL, WARNING, Recorder


class DriftReports:
    """Reports corrections and owners of replicas on the user's objects."""

    def __init__(self, corrections: Corrections, scalers: Scalers, recorder: Recorder) -> None:
        self.scalers = scalers
        self._corrections = corrections
        self._recorder = recorder

    def is_correction(self, key: MemberKey, digest: str, live: Object | None) -> bool:
        """Return whether the content of this hash was applied before, so that somebody has changed it since."""
        return self._corrections.is_correction(key, digest, live)

    def is_paused(self, propagation: Propagation, key: MemberKey, live: Object | None) -> bool:
        """Return whether the object must not be corrected now, and record why."""
        left_s = self._corrections.pause_left_s(key)
        drift = self._corrections.find(key)
        if left_s <= 0 or drift is None:
            return False
        message = f"{describe_drift(drift)} again and again; it is corrected again at {drift.paused_until}"
        propagation.record(key.cluster, ClusterStatus.CORRECTION_PAUSED, live, message)
        propagation.recheck(left_s)
        return True

    def record(self, propagation: Propagation, key: MemberKey, correction: Correction) -> None:
        """Count a correction, and tell users when it is news."""
        report = self._corrections.record(key, correction)
        drift = self._corrections.find(key)
        if drift is None:
            return
        where = f'cluster "{key.cluster}": {describe_drift(drift)}'
        if report.begins_burst:
            text = f"{where}; it was corrected"
            self._recorder.event(propagation.federated, NORMAL, names.EVENT_DRIFT_CORRECTED, text)
        if report.begins_fight:
            text = (
                f"{where}, more than {CORRECTIONS_MAX} times within {WINDOW_S / 60:.0f} minutes. Corrections in this "
                f"cluster pause until {drift.paused_until}, and longer each time; changes of the template are "
                "delivered at once. Stop the other writer, or leave the field out of the template and the overrides"
            )
            self._recorder.event(propagation.federated, WARNING, names.EVENT_CORRECTION_PAUSED, text)

    def report_scaler(self, propagation: Propagation, cluster: str, before: str, after: str) -> None:
        """Tell users that an autoscaler in a member owns the replicas from now on, or owns them no more."""
        owner = f'HorizontalPodAutoscaler "{after or before}"'
        if after:
            reason, what = names.EVENT_REPLICAS_HANDED_OVER, f"{owner} owns the replicas from now on"
        else:
            reason, what = names.EVENT_REPLICAS_TAKEN_BACK, f"{owner} is gone; the replicas are the federation's again"
        self._recorder.event(propagation.federated, NORMAL, reason, f'cluster "{cluster}": {what}')

    def record_write(self, key: MemberKey, digest: str) -> None:
        """Record the content of a successful write."""
        self._corrections.record_write(key, digest)

    def forget(self, key: MemberKey) -> None:
        """Forget an object that we removed: delivering it again is no correction."""
        self._corrections.forget(key)

    def forget_cluster(self, cluster: str) -> None:
        """Forget a cluster that left or was replaced."""
        self._corrections.forget_cluster(cluster)
        self.scalers.forget_cluster(cluster)
