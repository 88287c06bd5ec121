"""Triggers of the UnitedDeployment controller, and its wiring; the steps are in `reconcile.py`.

It runs inside a cluster, where workloads run their pods, and on the host, where they are placed in members.

Besides UnitedDeployments and their workloads, pods are triggers: whether they are scheduled and ready decides about
subsets of the schedule strategy Adaptive. `run` needs the CustomResourceDefinition of UnitedDeployment in the cluster.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.api import names
from federation.api.resources import UNITED_DEPLOYMENTS
from federation.apimachinery.clock import Clock
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.features.uniteddeployment.children import Children
from federation.features.uniteddeployment.localpods import SubsetPods
from federation.features.uniteddeployment.reconcile import Reconciler
from federation.features.uniteddeployment.rules.clustertargets import labelled_policies
from federation.features.uniteddeployment.rules.subsetpods import ready_condition
from federation.features.uniteddeployment.subsetwriter import SubsetWriter
from federation.planning.automigration.podanalysis import scheduled_condition
from federation.planning.corerules import PatchPod
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.events import Recorder
from federation.runtime.informers import Informers

_BY_SUBSET = "uniteddeployments/subset"


@dataclass(frozen=True, slots=True)
class UnitedDeploymentOptions:
    """Limits of the controller."""

    workers: int = 3
    """UnitedDeployments that are reconciled at the same time."""
    is_strict: bool = False
    """Whether percentages are always rounded half up, as in OpenKruise, so that some totals cannot be divided."""
    loop: ControllerOptions = field(default_factory=ControllerOptions)


class UnitedDeploymentController:
    """Keeps the workloads of every UnitedDeployment that the client reads. `run` runs until cancelled.

    `pods` are those of the workloads, `patch_pod` merges a strategic merge patch into a pod template.
    """

    def __init__(
        self,
        client: Client,
        informers: Informers,
        pods: SubsetPods,
        *,
        recorder: Recorder,
        patch_pod: PatchPod,
        clock: Clock,
        options: UnitedDeploymentOptions | None = None,
    ) -> None:
        chosen = options or UnitedDeploymentOptions()
        self._uniteds = informers.for_resource(UNITED_DEPLOYMENTS)
        self._uniteds.add_index(_BY_SUBSET, _subset_keys)
        self._children = Children(
            informers, pods, on_workload=self._on_workload, on_pod=self._on_pod, on_kinds=self._enqueue_all
        )
        reconciler = Reconciler(
            client,
            self._children,
            SubsetWriter(client, self._children, patch_pod),
            recorder,
            clock,
            cache=self._uniteds,
            is_strict=chosen.is_strict,
        )
        self.controller: Controller[Key] = Controller(
            "uniteddeployment",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=clock,
            options=chosen.loop,
            resync=self._keys,
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        await self._uniteds.wait_synced()
        await self._children.run()
        self._uniteds.add_handler(self._on_united)
        await self.controller.run()

    def _keys(self) -> Iterator[Key]:
        return map(key_of, self._uniteds.list())

    def _enqueue_all(self) -> None:
        for key in self._keys():
            self.controller.enqueue(key)

    def _on_united(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or _spec_facts(old) != _spec_facts(new)):
            self.controller.enqueue(key_of(new))

    def _on_workload(self, old: Object | None, new: Object | None) -> None:
        workload = new or old or {}
        owner = controller_of(workload)
        if owner is not None and owner.get("kind") == UNITED_DEPLOYMENTS.kind:
            self.controller.enqueue(Key(workload["metadata"]["namespace"], owner["name"]))

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _facts(old) == _facts(new):
            return
        metadata = (new or old or {})["metadata"]
        subset = (metadata.get("labels") or {}).get(names.SUBSET_NAME_LABEL)
        for united in self._uniteds.by_index(_BY_SUBSET, f"{metadata['namespace']}/{subset}"):
            self.controller.enqueue(key_of(united))


def _spec_facts(united: Object) -> tuple[Any, ...]:
    metadata = united["metadata"]
    return metadata.get("generation"), metadata.get("deletionTimestamp"), labelled_policies(united)


def _subset_keys(united: Object) -> Iterator[str]:
    for subset in ((united.get("spec") or {}).get("topology") or {}).get("subsets") or ():
        yield f"{united['metadata'].get('namespace', '')}/{subset.get('name')}"


def _facts(pod: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what decisions read from a pod."""
    scheduled = scheduled_condition(pod) or {}
    metadata = pod["metadata"]
    return (
        scheduled.get("status"),
        scheduled.get("reason"),
        (ready_condition(pod) or {}).get("lastTransitionTime"),
        (pod.get("status") or {}).get("phase"),
        metadata.get("deletionTimestamp"),
        metadata.get("labels"),
    )
