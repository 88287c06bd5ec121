"""How a pod of an old revision gets the newest one: in place or by deletion, as the workload's policy says.

CloneSets and the StatefulSets of apps.kruise.io use it; `inplace` decides whether a change is possible in place.
"""

from collections.abc import Mapping
from datetime import datetime

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object
from federation.simulator.controllers import inplace
from federation.simulator.controllers.pods import PodControl
from federation.simulator.controllers.revisions import REVISION_LABEL, template_of


async def update_pod(
    control: PodControl, pod: Object, policy: str, revisions: Mapping[str, Object], newest: str, now: datetime
) -> None:
    """Bring the pod to the revision `newest`; `revisions` has all of the workload's by name.

    The policy InPlaceOnly leaves a pod alone whose revisions differ in more than images, labels and annotations.
    """
    before = revisions.get((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))
    change = None
    if policy != inplace.RECREATE and before is not None:
        change = inplace.changed_in_place(template_of(before), template_of(revisions[newest]))
    if change is not None:
        await control.patch(pod, inplace.to_patch(pod, change, newest, to_rfc3339(now)))
    elif policy != inplace.IN_PLACE_ONLY:
        await control.delete([pod])
