"""The status of a federated object in KubeFed's form, from the status of our FederatedObject. Pure.

KubeFed leaves out the status of a cluster in which the object is as desired. Its only condition is `Propagation`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.resources import Object
from federation.features.kubefed.names import KUBEFED_PROPAGATION, REASON_PLACEMENT_FAILED

_OK = "OK"
_AS_DESIRED = frozenset((_OK, "Finished"))


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the objects that stand for a federated object are not as it says."""

    reason: str
    message: str


def plan_status(
    federated: Mapping[str, Any], propagated: Mapping[str, Any] | None, problem: Problem | None, now: datetime
) -> Object | None:
    """Return the next status, None when nothing changes.

    `propagated` is the FederatedObject of the object that the template describes, None while there is none.
    """
    before = federated.get("status") or {}
    clusters = [
        {"name": entry["cluster"], **({} if entry.get("status", _OK) in _AS_DESIRED else {"status": entry["status"]})}
        for entry in ((propagated or {}).get("status") or {}).get("clusters") or ()
    ]
    found = problem or _problem(propagated)
    held = conditions.set_condition(
        list(before.get("conditions") or ()),
        type_=KUBEFED_PROPAGATION,
        status="False" if found is not None else "True",
        reason=found.reason if found is not None else "",
        message=found.message if found is not None else "",
        now=now,
        time_fields=("lastUpdateTime",),
    )
    after = {"observedGeneration": federated["metadata"].get("generation", 0), "clusters": clusters, "conditions": held}
    defaults: Object = {"observedGeneration": 0, "clusters": [], "conditions": []}
    return None if {key: before.get(key, value) for key, value in defaults.items()} == after else after


def _problem(propagated: Mapping[str, Any] | None) -> Problem | None:
    held = ((propagated or {}).get("status") or {}).get("conditions")
    scheduled = conditions.find(held, names.SCHEDULED)
    if scheduled is not None and scheduled.get("status") == "False":
        return Problem(REASON_PLACEMENT_FAILED, str(scheduled.get("message") or scheduled.get("reason") or ""))
    condition = conditions.find(held, names.PROPAGATED)
    if condition is not None and condition.get("status") == "True":
        return None
    return Problem(names.REASON_CHECK_CLUSTERS, str((condition or {}).get("message") or ""))
