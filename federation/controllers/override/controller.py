"""Triggers of the override controller, and its wiring; the steps are in `reconcile.py`.

It compiles each override policy once (`planning/overrides/policymatching.py`) and finds the objects that a changed
policy selects by index.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from federation.api import names
from federation.api.federatedtype import template_problem
from federation.api.resources import CLUSTER_OVERRIDE_POLICIES, FEDERATED_CLUSTERS, OVERRIDE_POLICIES, PROJECTS
from federation.apimachinery import conditions
from federation.apimachinery.resources import GroupKind, Object
from federation.controllers.override.names import EVENT_INVALID_OVERRIDE_POLICY, EVENT_MATCH_OVERRIDE_POLICY_FAILED
from federation.controllers.override.reconcile import WRITER, Reconciler
from federation.controllers.override.replicaguard import OverrideGuard
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.objectindex import policies_named
from federation.planning.federatedobject.placements import overrides_of
from federation.planning.guard.ledger import GuardOptions
from federation.planning.overrides.policymatching import Bindings, selected_types, subject_of_federated
from federation.planning.projects.projectindex import ProjectIndex
from federation.planning.waves.policychanges import is_policy_changed
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers
from federation.scheduling.policyreferences import reference_warnings

_BY_POLICY = "override/policy"
_TRIGGERS = Triggers(
    labels=True,
    deletion=False,
    is_due=partial(pendingcontrollers.is_due, controller=names.OVERRIDE_CONTROLLER),
    is_pending=partial(pendingcontrollers.is_at_head, controller=names.OVERRIDE_CONTROLLER),
)


@dataclass(frozen=True, slots=True)
class OverrideOptions:
    """Limits of the override controller."""

    workers: int = 8
    """Concurrent reconciles."""
    guard: GuardOptions = field(default_factory=GuardOptions)
    loop: ControllerOptions = field(default_factory=ControllerOptions)


class OverrideController:
    """Keeps the overrides of every federated object up to date. `run` runs until cancelled."""

    def __init__(
        self, host: Host, *, options: OverrideOptions | None = None, is_full: Callable[[str], bool] = lambda _: False
    ) -> None:
        """`is_full` returns whether a namespace stores more bytes than it may; its overrides do not grow then."""
        chosen = options or OverrideOptions()
        self._objects = host.objects
        self._recorder = host.recorder
        self._bindings = Bindings()
        self._is_started = False
        self._policies = [
            host.informers.for_resource(OVERRIDE_POLICIES),
            host.informers.for_resource(CLUSTER_OVERRIDE_POLICIES),
        ]
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._projects = host.informers.for_resource(PROJECTS)
        host.objects.add_index(_BY_POLICY, _named_policies)
        self._guard = OverrideGuard(host, chosen.guard, self._enqueue)
        self._reconciler = Reconciler(
            host.objects,
            self._bindings,
            host.recorder,
            guard=self._guard,
            is_full=is_full,
            cluster=lambda name: self._clusters.get("", name),
        )
        self.controller: Controller[Key] = Controller(
            "override",
            self._reconciler.reconcile,
            workers=chosen.workers,
            clock=host.clock,
            options=chosen.loop,
            resync=host.objects.all_keys,
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        for informer in self._policies:
            informer.add_handler(self._on_policy)
        self._clusters.add_handler(self._on_cluster)
        # Without complete caches an existing policy or cluster would count as absent.
        await asyncio.gather(
            *(informer.wait_synced() for informer in [*self._policies, self._clusters, self._projects])
        )
        self._objects.subscribe(self._on_federated, _TRIGGERS, writer=WRITER, is_late=True)
        await self._objects.wait_synced()
        await self._guard.recall()
        self._is_started = True
        self._objects.complete_writes(self._reconciler.complete, writer=WRITER)
        await self.controller.run()

    # -- events

    def _enqueue(self, key: Key) -> None:
        self.controller.enqueue(key)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if new is not None and (
            pendingcontrollers.is_at_head(new, names.OVERRIDE_CONTROLLER) or self._is_overridden(new)
        ):
            self.controller.enqueue(key_of(new))

    def _is_overridden(self, federated: Object) -> bool:
        """Return whether the object has overrides, may get some, or reports that they could not be computed.

        The cached policies decide, not the annotation `idle-controllers`: a policy may have
        appeared after the federate controller wrote that. A later one finds the object through the indexes.
        """
        if template_problem(federated):
            return False
        held = (federated.get("status") or {}).get("conditions")
        return (
            bool(overrides_of(federated, names.OVERRIDE_CONTROLLER))
            or self._bindings.may_apply(subject_of_federated(federated))
            or conditions.find(held, names.OVERRIDES_APPLIED) is not None
        )

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        if not is_policy_changed(old, new):
            return
        if new is not None:
            if problem := self._bindings.put(new):
                self._recorder.event(new, "Warning", EVENT_MATCH_OVERRIDE_POLICY_FAILED, problem)
            for warning in self._reference_warnings(new):
                self._recorder.event(new, "Warning", EVENT_INVALID_OVERRIDE_POLICY, warning)
        elif old is not None:
            self._bindings.drop(old)
        policy = new if new is not None else old or {}
        for federated in self._selected(policy, selected_types((old, new))):
            self.controller.enqueue(key_of(federated))

    def _reference_warnings(self, policy: Object) -> list[str]:
        """Return warnings about what the policy refers to; none while the caches may lack what exists."""
        if not self._is_started:
            return []
        clusters = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in self._clusters.list()}
        project = ProjectIndex(self._projects.list()).of(policy["metadata"].get("namespace", ""))
        if project is not None:
            clusters = {name: labels for name, labels in clusters.items() if project.has(name, labels)}
        kinds = {type_.resource.group_kind for type_ in self._objects.types.all()}
        return reference_warnings(policy, clusters, kinds)

    def _selected(self, policy: Object, kinds: set[GroupKind]) -> Iterable[Object]:
        """Yield the objects that name the policy, and those of the kinds that it selects or selected."""
        namespace, name = policy["metadata"].get("namespace", ""), policy["metadata"]["name"]
        yield from self._objects.by_index(_BY_POLICY, f"{namespace}/{name}", namespace)
        for kind in kinds:
            yield from self._objects.of_kind(kind, namespace)

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        """Enqueue all objects with overrides when a cluster is added, removed or relabelled."""
        if old is not None and new is not None and old["metadata"].get("labels") == new["metadata"].get("labels"):
            return
        for federated in self._objects.scan():
            if self._is_overridden(federated):
                self.controller.enqueue(key_of(federated))


def _named_policies(federated: Mapping[str, Any]) -> Iterator[str]:
    return policies_named(federated, names.OVERRIDE_POLICY_LABEL, names.CLUSTER_OVERRIDE_POLICY_LABEL)
