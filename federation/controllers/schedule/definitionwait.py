"""Let a new custom object wait for its definition, which is delivered by us and reaches members a moment later.

A chart creates a CustomResourceDefinition and objects of it at once. A member serves the new kind only when it has the
definition and its API was discovered again. A decision before that leaves the member out, and most policies keep such a
decision (`reschedulePolicy`), so that the object would never get there.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from federation.apimachinery.clock import Clock, from_rfc3339, is_ahead
from federation.apimachinery.resources import CRDS, Object
from federation.controllers.schedule import names
from federation.controllers.schedule.decider import AttemptContext
from federation.planning.federatedobject.placements import effective_placement
from federation.runtime.federatedobjects import FederatedObjects
from federation.scheduling.answers import Wait
from federation.scheduling.engine import Decision
from federation.scheduling.queueinghints import QueueingHint
from federation.scheduling.snapshot import Snapshot

WAIT_MAX = timedelta(seconds=30)
"""How long after its creation, or that of its definition, an object waits."""


class DefinitionWait:
    """Finds the members that a first decision should wait for."""

    def __init__(self, objects: FederatedObjects, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock

    def late(self, context: AttemptContext, decision: Decision, snapshot: Snapshot) -> frozenset[str]:
        """Return the ready clusters that get the object's definition and do not serve its kind yet.

        None for an object that is placed already, and when the time to wait is over.
        """
        if decision.filtered is None or not decision.filtered.rejected or context.attempt.current():
            return frozenset()
        kind = decision.unit.gvk
        lacking = {c.name for c in snapshot.clusters if c.is_ready and kind not in c.api_types}
        lacking &= decision.filtered.rejected.keys()
        definition = self._definition_of(context.federated) if lacking else None
        if definition is None or self._until(context.federated, definition) <= self._clock.now():
            return frozenset()
        return effective_placement(definition) & lacking

    def failure(self, clusters: Iterable[str]) -> Wait:
        """Return what the object's condition says meanwhile."""
        text = f"the definition of its kind is on its way to {', '.join(sorted(clusters))}"
        return Wait(names.REASON_AWAITS_DEFINITION, text)

    def hint(self, hint: QueueingHint, federated: Object) -> QueueingHint:
        """Return the hint, which also ends the wait at its time."""
        definition = self._definition_of(federated)
        return hint if definition is None else replace(hint, at=self._until(federated, definition))

    def _definition_of(self, federated: Object) -> Object | None:
        template = federated["spec"]["template"]
        group, _, _ = str(template["apiVersion"]).rpartition("/")
        for each in self._objects.of_kind(CRDS.group_kind):
            spec = each["spec"]["template"].get("spec") or {}
            if spec.get("group") == group and (spec.get("names") or {}).get("kind") == template["kind"]:
                return each
        return None

    def _until(self, *objects: Object) -> datetime:
        now = self._clock.now()
        texts = (each["metadata"].get("creationTimestamp") for each in objects)
        times = [from_rfc3339(at) if at else now for at in texts]
        # A server whose clock was ahead must not let the object wait for as long.
        return max((at for at in times if not is_ahead(at, now)), default=now) + WAIT_MAX
