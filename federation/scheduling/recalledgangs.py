"""Gangs that were placed shortly before a start: no report may show their pods yet. Pure.

What recent decisions assume is in memory only (`assumedreplicas.py`). After a restart a gang that waits must not get
the room of one that was placed a moment before, whose operator has not created its pods. So these are assumed again.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions
from federation.apimachinery.clock import from_rfc3339
from federation.planning.components import is_gang
from federation.planning.federatedobject.finished import has_finished_everywhere
from federation.planning.federatedobject.placements import current_clusters
from federation.scheduling.framework.assumed import Request
from federation.scheduling.framework.types import PodSet
from federation.scheduling.jobqueues import admission_of
from federation.scheduling.podgroups import membership_of, pods_in
from federation.scheduling.podrequest import claims_of, demand_of

_RECENT = timedelta(seconds=60)
"""How long after its delivery the pods of a gang may be missing in the reports that are known at a start."""


def recalled_pods(
    federated: Mapping[str, Any], type_: FederatedType, wish: str, now: datetime
) -> tuple[dict[Request, int], list[str]]:
    """Return the pods by request and the clusters of a gang that was placed recently, nothing for other objects.

    `wish` is what its policy says about gangs; an annotation of the object replaces it.
    """
    template = federated["spec"]["template"]
    wish = (federated["metadata"].get("annotations") or {}).get(names.GANG, wish)
    if not wish and admission_of(federated) is not None:
        wish = "Always"
    group = membership_of(federated)
    is_whole = is_gang(template, type_.components, wish) if group is None else group.leads and wish != "Never"
    if not is_whole or has_finished_everywhere(federated):
        return {}, []
    delivered = conditions.find((federated.get("status") or {}).get("conditions"), names.PROPAGATED) or {}
    if delivered.get("status") == "True" and now - from_rfc3339(str(delivered["lastTransitionTime"])) > _RECENT:
        return {}, []
    claims = claims_of(federated)
    pods = demand_of(template, type_, claims) if group is None else pods_in(group, claims)
    return pods_by_request(pods), sorted(current_clusters(federated, type_))


def pods_by_request(pods: tuple[PodSet, ...]) -> dict[Request, int]:
    """Return the number of pods by what each of them requests."""
    counts: dict[Request, int] = {}
    for component in pods:
        request = component.shape.request
        counts[request] = counts.get(request, 0) + component.count
    return counts
