"""Create the FederatedTypeConfig of a kind that a policy selects and that none covers.

`planning/typederivation.py` decides which kinds get one and what it says. It is created once and then belongs
to administrators: it is never changed here, and it stays when the policy goes. The author of the policy gets an event
about what was created, or why nothing was.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.errors import AlreadyExists, Forbidden, Invalid
from federation.apimachinery.resources import CRDS, Object
from federation.apimachinery.selectors import SelectorError
from federation.features.types.names import EVENT_KIND_NOT_FEDERATED, EVENT_TYPE_CONFIG_DERIVED
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.typederivation import NotDerivableError, defines, derive_built_in, derive_custom
from federation.runtime.controller import DONE, Controller, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host
from federation.runtime.transforms import slim_definition
from federation.scheduling.policyspec import compile_resource_selectors

_WORKERS = 1
_DERIVED_MAX = 200
"""Derived configurations; each makes the control plane watch a kind in every member."""
_RECHECK_S = 15.0
"""Pause until a kind that cannot be derived is looked at again: its definition may have been placed."""
_PolicyKey = tuple[str, str]
"""Namespace ("" for a ClusterPropagationPolicy) and name."""


class SelectedKind(NamedTuple):
    """A kind that a policy selects."""

    api_version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.api_version}"


class TypeDerivationController:
    """Owns the queue of selected kinds. `run` runs until cancelled."""

    def __init__(self, host: Host) -> None:
        informers = host.informers
        self._client = host.client
        self._objects = host.objects
        self._recorder = host.recorder
        self._policies = {
            True: informers.for_resource(CLUSTER_PROPAGATION_POLICIES),
            False: informers.for_resource(PROPAGATION_POLICIES),
        }
        self._definitions = informers.for_resource(CRDS, transform=slim_definition)
        self._selecting: dict[SelectedKind, set[_PolicyKey]] = {}
        self._selected: dict[_PolicyKey, set[SelectedKind]] = {}
        self._told: dict[SelectedKind, str] = {}
        """Why a kind is not federated, so that its policy gets one event."""
        self.controller: Controller[SelectedKind] = Controller(
            "typederivation", self.reconcile, workers=_WORKERS, clock=host.clock
        )

    async def run(self) -> None:
        """Subscribe, and start the worker once everything that exists is known."""
        for informer in self._policies.values():
            informer.add_handler(self._on_policy)
        self._definitions.add_handler(self._on_definition)
        stop = self._objects.types.add_listener(lambda _: None, self._on_type_removed)
        synced = (informer.wait_synced() for informer in (*self._policies.values(), self._definitions))
        try:
            await asyncio.gather(self._objects.wait_synced(), *synced)
            await self.controller.run()
        finally:
            stop()

    async def reconcile(self, selected: SelectedKind) -> Result:
        """Create the configuration of one kind unless one covers it in any version."""
        policies = self._selecting.get(selected)
        group, _, version = selected.api_version.rpartition("/")
        if not policies or self._objects.types.for_group_kind(group, selected.kind) is not None:
            self._told.pop(selected, None)
            return DONE
        definition = next((each for each in self._definitions.list() if defines(each, group, selected.kind)), None)
        is_cluster_wide = any(not namespace for namespace, _ in policies)
        try:
            config = self._derive(group, version, selected, definition, is_cluster_wide=is_cluster_wide)
            await self._client.create(FEDERATED_TYPE_CONFIGS, config, field_manager=names.FIELD_MANAGER)
        except AlreadyExists:
            return DONE
        except (NotDerivableError, Invalid, Forbidden) as error:
            text = f"{selected} is not federated: {error}"
            if self._told.get(selected) != text:
                self._told[selected] = text
                self._tell(policies, WARNING, EVENT_KIND_NOT_FEDERATED, text)
            # A definition that appears requeues the kind; its placement in members does not.
            return DONE if definition is None else Result(requeue_after_s=_RECHECK_S)
        text = f"created FederatedTypeConfig {config['metadata']['name']} for {selected}"
        self._tell(policies, NORMAL, EVENT_TYPE_CONFIG_DERIVED, text)
        return DONE

    def _derive(
        self, group: str, version: str, selected: SelectedKind, definition: Object | None, *, is_cluster_wide: bool
    ) -> Object:
        derived = sum(
            1
            for config in self._objects.types.informer.list()
            if names.DERIVED_TYPE in (config["metadata"].get("labels") or {})
        )
        if derived >= _DERIVED_MAX:
            text = f"{derived} FederatedTypeConfigs are derived already; delete some, or create this one by hand"
            raise NotDerivableError(text)
        built_in = derive_built_in(selected.api_version, selected.kind, is_cluster_wide=is_cluster_wide)
        if built_in is not None:
            return built_in
        is_placed = definition is not None and self._is_placed(definition)
        return derive_custom(
            definition, group, version, selected.kind, is_cluster_wide=is_cluster_wide, is_placed=is_placed
        )

    def _is_placed(self, definition: Mapping[str, Any]) -> bool:
        type_ = self._objects.types.for_resource(CRDS)
        if type_ is None:
            return False
        federated = self._objects.get(self._objects.key_for(type_, "", definition["metadata"]["name"]))
        return federated is not None and bool(effective_placement(federated))

    def _tell(self, policies: set[_PolicyKey], type_: str, reason: str, text: str) -> None:
        namespace, name = min(policies)
        policy = self._policies[not namespace].get(namespace, name)
        if policy is not None:
            self._recorder.event(policy, type_, reason, text)

    # -- events

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        metadata = (new if new is not None else old or {})["metadata"]
        policy = (metadata.get("namespace") or "", metadata["name"])
        try:
            selectors = compile_resource_selectors(new) if new is not None else ()
        except (SelectorError, ValueError, TypeError):
            return  # as for the scheduler, the previous version stays in force
        for selected in self._selected.pop(policy, ()):
            self._selecting[selected].discard(policy)
            if not self._selecting[selected]:
                del self._selecting[selected]
                self._told.pop(selected, None)
        for selector in selectors:
            selected = SelectedKind(selector.api_version, selector.kind)
            self._selecting.setdefault(selected, set()).add(policy)
            self._selected.setdefault(policy, set()).add(selected)
            self.controller.enqueue(selected)

    def _on_type_removed(self, type_: FederatedType) -> None:
        """Requeue the kind: while a policy selects it, its configuration comes back."""
        selected = SelectedKind(type_.resource.api_version, type_.resource.kind)
        if selected in self._selecting:
            self.controller.enqueue(selected)

    def _on_definition(self, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        for selected in _kinds_of(new or {}):
            if selected in self._selecting:
                self.controller.enqueue(selected)


def _kinds_of(definition: Mapping[str, Any]) -> Iterator[SelectedKind]:
    spec = definition.get("spec") or {}
    for version in spec.get("versions") or ():
        yield SelectedKind(f"{spec.get('group')}/{version.get('name')}", str((spec.get("names") or {}).get("kind")))
