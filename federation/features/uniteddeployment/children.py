"""The cached objects that belong to UnitedDeployments: workloads, their pods, revisions of the template.

CloneSets and StatefulSets of OpenKruise exist only where a CustomResourceDefinition does, so their informers start when
it appears and stop when it disappears. Lives as long as its controller.
"""

from collections.abc import Callable, Iterable, Mapping

from federation.apimachinery.conditions import is_true
from federation.apimachinery.ownerreferences import controller_of, controller_uids
from federation.apimachinery.resources import CONTROLLER_REVISIONS, CRDS, Object
from federation.apimachinery.selectors import SelectorError, compile_label_selector
from federation.features.uniteddeployment.localpods import SubsetPods
from federation.features.uniteddeployment.rules.workloadkinds import KINDS, WorkloadKind
from federation.runtime.handlers import Handler
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers

_BY_OWNER = "uniteddeployments/owner"


class Children:
    """Caches of one cluster.

    `on_workload` is called for changes of workloads, `on_pod` for those of pods with a subset, `on_kinds` when the
    cluster serves more or fewer kinds than before, and when it is not known what changed.
    """

    def __init__(
        self,
        informers: Informers,
        pods: SubsetPods,
        *,
        on_workload: Handler,
        on_pod: Handler,
        on_kinds: Callable[[], None],
    ) -> None:
        self._informers = informers
        self._on_workload = on_workload
        self._on_pod = on_pod
        self._on_kinds = on_kinds
        self._workloads: dict[str, Informer] = {}
        self._definitions = informers.for_resource(CRDS)
        self.revisions = informers.for_resource(CONTROLLER_REVISIONS)
        self.pods = pods
        self.revisions.add_index(_BY_OWNER, controller_uids)

    async def run(self) -> None:
        """Subscribe and return once all caches are synced."""
        for kind in KINDS:
            if not kind.is_custom:
                self._serve(kind)
        await self._definitions.wait_synced()
        self._definitions.add_handler(self._on_definition)
        await self.revisions.wait_synced()
        await self.pods.run(self._on_pod, self._on_kinds)
        for informer in list(self._workloads.values()):
            await informer.wait_synced()

    async def wait_served(self, kind: WorkloadKind) -> bool:
        """Return False if the cluster does not serve the kind; otherwise wait until its cache is complete."""
        informer = self._workloads.get(kind.template)
        if informer is None:
            return False
        await informer.wait_synced()
        return True

    def workloads_of(self, united: Mapping[str, object], kind: WorkloadKind) -> list[Object]:
        """Return the workloads of this kind that the UnitedDeployment controls, oldest first."""
        informer = self._workloads.get(kind.template)
        if informer is None:
            return []
        return sorted(informer.by_index(_BY_OWNER, _uid(united)), key=_age_key)

    def revisions_of(self, united: Mapping[str, object]) -> list[Object]:
        """Return the revisions that the UnitedDeployment controls."""
        return list(self.revisions.by_index(_BY_OWNER, _uid(united)))

    def pods_of(self, workload: Object, subset: str) -> list[Object]:
        """Return the pods that a controller created for the workload, by its selector."""
        try:
            selector = compile_label_selector((workload.get("spec") or {}).get("selector"))
        except SelectorError:
            return []
        pods = self.pods.in_subset(workload["metadata"]["namespace"], subset)
        found = [
            pod
            for pod in pods
            if controller_of(pod) is not None and selector.matches(pod["metadata"].get("labels") or {})
        ]
        return sorted(found, key=_age_key)

    async def wait_for(self, kind: WorkloadKind, resource_version: str) -> None:
        """Wait until the cache of the kind has the result of a write."""
        informer = self._workloads.get(kind.template)
        if informer is not None:
            await informer.wait_for(resource_version)

    def _serve(self, kind: WorkloadKind) -> None:
        if kind.template in self._workloads:
            return
        informer = self._informers.for_resource(kind.resource)
        self._workloads[kind.template] = informer
        informer.add_index(_BY_OWNER, controller_uids)
        informer.add_handler(self._on_workload)
        self._on_kinds()

    def _withdraw(self, kind: WorkloadKind) -> None:
        informer = self._workloads.pop(kind.template, None)
        if informer is not None:
            self._informers.release(informer)
            self._on_kinds()

    def _on_definition(self, old: Object | None, new: Object | None) -> None:
        definition = new or old or {}
        for kind in KINDS:
            if kind.is_custom and definition["metadata"]["name"] == kind.resource.group_resource:
                act = self._serve if new is not None and _is_established(new, kind) else self._withdraw
                act(kind)


def _is_established(definition: Object, kind: WorkloadKind) -> bool:
    versions: Iterable[Object] = (definition.get("spec") or {}).get("versions") or ()
    is_served = any(each.get("name") == kind.resource.version and each.get("served") for each in versions)
    return is_served and is_true((definition.get("status") or {}).get("conditions"), "Established")


def _uid(united: Mapping[str, object]) -> str:
    metadata = united["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["uid"])


def _age_key(obj: Object) -> tuple[str, str]:
    return str(obj["metadata"].get("creationTimestamp") or ""), str(obj["metadata"]["name"])
