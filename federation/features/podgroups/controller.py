"""Triggers: a federated Pod that names a group, and the PodGroup that says how many pods it has."""

from collections.abc import Iterator

from federation.api import names
from federation.apimachinery.resources import Object
from federation.features.podgroups.reconcile import BY_GROUP, GroupKey, Reconciler
from federation.planning.federatedobject.finished import has_finished_everywhere
from federation.planning.podgroups import GroupRef, group_of, is_pod_group
from federation.planning.rendering.admittednodes import QUEUE_NODES
from federation.runtime.controller import Controller
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers
from federation.scheduling.jobqueues import ADMISSION

_TRIGGERS = Triggers(
    annotations={names.POD_GROUP, ADMISSION.name, QUEUE_NODES.name},
    status=has_finished_everywhere,
)
"""What the records depend on. Each look reads the whole group, so reports about its pods must not cause one."""
_WORKERS = 4
_COALESCING_S = 0.05
"""Delay between a change of a pod and the look at its group: a group of many pods is not read once for each."""


class PodGroupController:
    """Keeps the records of groups on their pods. `run` works until cancelled."""

    def __init__(self, host: Host) -> None:
        self._objects = host.objects
        self._objects.add_index(BY_GROUP, _groups)
        self.controller: Controller[GroupKey] = Controller(
            "podgroups", Reconciler(host).reconcile, workers=_WORKERS, clock=host.clock
        )

    async def run(self) -> None:
        """Subscribe once all objects are known, and start the workers."""
        await self._objects.wait_synced()
        self._objects.subscribe(self._on_federated, _TRIGGERS)
        await self.controller.run()

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        for federated in (old, new):
            if federated is None:
                continue
            template, namespace = federated["spec"]["template"], federated["metadata"].get("namespace", "")
            ref = group_of(template)
            if ref is None and is_pod_group(template):
                ref = GroupRef(str(template["apiVersion"]).partition("/")[0], str(template["metadata"]["name"]))
            if ref is not None:
                self.controller.enqueue(GroupKey(namespace, ref), after_s=_COALESCING_S)


def _groups(federated: Object) -> Iterator[str]:
    ref = group_of(federated["spec"]["template"])
    if ref is not None:
        yield str(ref)
