"""The event NoPolicy of workloads that no policy selects, after a short grace.

`kubectl apply` of a folder creates an object a moment before its policy. The condition shows at once that no policy
selects it; the event, which stays for an hour, waits until that is not about to change. A restart during the grace
begins from the condition's time.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions
from federation.apimachinery.clock import Clock, from_rfc3339
from federation.apimachinery.resources import Object
from federation.delivery.members.keptstate import KeptState
from federation.planning.status.sourceconditions import takes_source_conditions
from federation.runtime.controller import Key
from federation.runtime.events import NORMAL, Recorder

_GRACE_S = 5.0
"""How long a workload may have no policy before the event."""


class MissingPolicyReports:
    """Emits the event once per object and loss of its policy."""

    def __init__(self, recorder: Recorder, clock: Clock, kept: KeptState) -> None:
        self._recorder = recorder
        self._clock = clock
        self._pending: set[Key] = kept.by_object(set())

    def update(
        self, key: Key, federated: Object, type_: FederatedType, before: Mapping[str, Any], reason: str, message: str
    ) -> float | None:
        """Take note of an object's reason for Propagated=False, `before` being its status until now.

        Return when to look again: when the grace of its event ends.
        """
        resource = type_.resource
        if reason != names.REASON_NO_POLICY or not takes_source_conditions(resource.group, resource.kind):
            self._pending.discard(key)
            return None
        remaining_s = self._remaining_s(before)
        if remaining_s > 0:
            self._pending.add(key)
            return remaining_s
        if key in self._pending:
            self._pending.discard(key)
            self._recorder.event(federated, NORMAL, names.REASON_NO_POLICY, message)
        return None

    def _remaining_s(self, before: Mapping[str, Any]) -> float:
        known = conditions.find(before.get("conditions"), names.PROPAGATED) or {}
        if known.get("reason") != names.REASON_NO_POLICY:
            return _GRACE_S
        try:
            since = from_rfc3339(known["lastTransitionTime"])
        except (KeyError, TypeError, ValueError):
            return 0.0
        age_s = (self._clock.now() - since).total_seconds()
        # A time in the future is that of another clock; waiting for it could take for ever.
        return _GRACE_S - age_s if age_s >= 0 else 0.0
