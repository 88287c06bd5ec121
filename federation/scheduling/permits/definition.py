"""Let a new custom object wait for its definition, which is delivered by us and reaches members a moment later. Pure.

A chart creates a CustomResourceDefinition and objects of it at once. A member serves the new kind only when it has the
definition and its API was discovered again. A decision before that leaves the member out, and most policies keep such a
decision (`reschedulePolicy`), so that the object would never get there.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from federation.apimachinery.clock import from_rfc3339, is_ahead
from federation.apimachinery.resources import CRDS
from federation.planning.federatedobject.placements import effective_placement
from federation.scheduling.answers import Wait
from federation.scheduling.chain import Permit
from federation.scheduling.names import REASON_AWAITS_DEFINITION
from federation.scheduling.proposal import Proposal
from federation.scheduling.worldobjects import WorldObjects

WAIT_MAX = timedelta(seconds=30)
"""How long after its creation, or that of its definition, an object waits."""


class DefinitionArrived(Permit):
    """The ready clusters that get the object's definition, and do not serve its kind yet."""

    name = "definition"
    asks_of_failures = True

    def permit(self, proposal: Proposal) -> Proposal | Wait:
        """Wait for them; an object that is placed already does not, and none does when the time is over."""
        decision, attempt, now = proposal.decision, proposal.attempt, proposal.now
        if decision.filtered is None or not decision.filtered.rejected or attempt.current():
            return proposal
        kind = decision.unit.gvk
        lacking = {c.name for c in proposal.snapshot.clusters if c.is_ready and kind not in c.api_types}
        lacking &= decision.filtered.rejected.keys()
        definition = _definition_of(attempt.federated, proposal.world.federated_objects) if lacking else None
        if definition is None or (until := _until(now, attempt.federated, definition)) <= now:
            return proposal
        late = effective_placement(definition) & lacking
        if not late:
            return proposal
        text = f"the definition of its kind is on its way to {', '.join(sorted(late))}"
        return Wait(REASON_AWAITS_DEFINITION, text, (until - now).total_seconds())


def _definition_of(federated: Mapping[str, Any], objects: WorldObjects) -> Mapping[str, Any] | None:
    template = federated["spec"]["template"]
    group, _, _ = str(template["apiVersion"]).rpartition("/")
    for each in objects.of_kind(CRDS.group_kind):
        spec = each["spec"]["template"].get("spec") or {}
        if spec.get("group") == group and (spec.get("names") or {}).get("kind") == template["kind"]:
            return each
    return None


def _until(now: datetime, *objects: Mapping[str, Any]) -> datetime:
    texts = (each["metadata"].get("creationTimestamp") for each in objects)
    times = [from_rfc3339(at) if at else now for at in texts]
    # A server whose clock was ahead must not let the object wait for as long.
    return max((at for at in times if not is_ahead(at, now)), default=now) + WAIT_MAX
