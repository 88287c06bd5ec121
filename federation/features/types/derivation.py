"""Create the FederatedTypeConfig of a kind that a policy selects and that none covers.

`planning/typederivation.py` decides which kinds get one and what it says. It is created once and then belongs
to administrators: it is not changed here, and it stays when the policy goes. `reconcile.py` lets it follow the version
that its definition stores. The author of the policy gets an event
about what was created, or why nothing was.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.errors import AlreadyExists, Forbidden, Invalid
from federation.apimachinery.resources import CRDS, GroupKind, Object
from federation.apimachinery.selectors import SelectorError
from federation.features.types.names import EVENT_KIND_NOT_FEDERATED, EVENT_TYPE_CONFIG_DERIVED
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.typederivation import NotDerivableError, defined_kind, defines, derive_built_in, derive_custom
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
        self._selecting: dict[GroupKind, set[_PolicyKey]] = {}
        self._selected: dict[_PolicyKey, set[GroupKind]] = {}
        self._told: dict[GroupKind, str] = {}
        """Why a kind is not federated, so that its policy gets one event."""
        self.controller: Controller[GroupKind] = Controller(
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

    async def reconcile(self, kind: GroupKind) -> Result:
        """Create the configuration of one kind unless one covers it."""
        policies = self._selecting.get(kind)
        if not policies or self._objects.types.for_group_kind(*kind) is not None:
            self._told.pop(kind, None)
            return DONE
        definition = next((each for each in self._definitions.list() if defines(each, kind)), None)
        is_cluster_wide = any(not namespace for namespace, _ in policies)
        try:
            config = self._derive(kind, definition, is_cluster_wide=is_cluster_wide)
            await self._client.create(FEDERATED_TYPE_CONFIGS, config, field_manager=names.FIELD_MANAGER)
        except AlreadyExists:
            return DONE
        except (NotDerivableError, Invalid, Forbidden) as error:
            text = f"{kind} is not federated: {error}"
            if self._told.get(kind) != text:
                self._told[kind] = text
                self._tell(policies, WARNING, EVENT_KIND_NOT_FEDERATED, text)
            # A definition that appears requeues the kind; its placement in members does not.
            return DONE if definition is None else Result(requeue_after_s=_RECHECK_S)
        text = f"created FederatedTypeConfig {config['metadata']['name']} for {kind}"
        self._tell(policies, NORMAL, EVENT_TYPE_CONFIG_DERIVED, text)
        return DONE

    def _derive(self, kind: GroupKind, definition: Object | None, *, is_cluster_wide: bool) -> Object:
        derived = sum(
            1
            for config in self._objects.types.informer.list()
            if names.DERIVED_TYPE in (config["metadata"].get("labels") or {})
        )
        if derived >= _DERIVED_MAX:
            text = f"{derived} FederatedTypeConfigs are derived already; delete some, or create this one by hand"
            raise NotDerivableError(text)
        built_in = derive_built_in(kind, is_cluster_wide=is_cluster_wide)
        if built_in is not None:
            return built_in
        is_placed = definition is not None and self._is_placed(definition)
        return derive_custom(definition, kind, is_cluster_wide=is_cluster_wide, is_placed=is_placed)

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
            self._selecting.setdefault(selector.kind, set()).add(policy)
            self._selected.setdefault(policy, set()).add(selector.kind)
            self.controller.enqueue(selector.kind)

    def _on_type_removed(self, type_: FederatedType) -> None:
        """Requeue the kind: while a policy selects it, its configuration comes back."""
        if type_.resource.group_kind in self._selecting:
            self.controller.enqueue(type_.resource.group_kind)

    def _on_definition(self, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if new is not None and (kind := defined_kind(new)) in self._selecting:
            self.controller.enqueue(kind)
