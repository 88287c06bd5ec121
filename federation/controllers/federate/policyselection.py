"""Find the new objects that will be placed: namespaces, and objects that a policy selects.

The embedded API server asks for every new object, before the scheduler knows it, so the policies' selectors are indexed
by the kind that they select. It follows the policies of the host and lives as long as the control plane.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import GroupKind, Object
from federation.apimachinery.selectors import SelectorError
from federation.runtime.informers import Informers
from federation.scheduling.policymatching import labelled_policy
from federation.scheduling.policyspec import PolicyRef, ResourceSelector, compile_resource_selectors

_Kind = tuple[str, GroupKind]
"""Namespace of the policy, "" for all, and the kind of the selected objects."""


class PolicySelection:
    """The resource selectors of all policies."""

    def __init__(self, informers: Informers) -> None:
        self._informers = [
            informers.for_resource(PROPAGATION_POLICIES),
            informers.for_resource(CLUSTER_PROPAGATION_POLICIES),
        ]
        self._selectors: dict[_Kind, dict[PolicyRef, list[ResourceSelector]]] = {}
        self._kinds: dict[PolicyRef, set[_Kind]] = {}
        for informer in self._informers:
            informer.add_handler(self._on_policy)

    async def wait_synced(self) -> None:
        """Return once every policy that exists is known."""
        await asyncio.gather(*(informer.wait_synced() for informer in self._informers))

    def expects_placement(self, type_: FederatedType, source: Mapping[str, Any]) -> bool:
        """Return whether the object of the type will be placed as far as policies and its type decide it.

        Followers, and objects whose policy is created later, are placed without being expected.
        """
        if any(names.NSAUTOPROP_CONTROLLER in stage for stage in type_.controllers):
            return True
        metadata = source["metadata"]
        namespace = metadata.get("namespace") or ""
        if labelled_policy(namespace, metadata.get("labels") or {}) is not None:
            return True
        for scope in dict.fromkeys((namespace, "")):
            for selectors in self._selectors.get((scope, type_.resource.group_kind), {}).values():
                if any(_selects(selector, metadata) for selector in selectors):
                    return True
        return False

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        metadata = (new if new is not None else old or {})["metadata"]
        ref = PolicyRef(metadata.get("namespace") or "", metadata["name"])
        try:
            selectors = compile_resource_selectors(new) if new is not None else ()
        except (SelectorError, ValueError, TypeError):
            return  # as for the scheduler, the previous version stays in force
        for kind in self._kinds.pop(ref, ()):
            del self._selectors[kind][ref]
            if not self._selectors[kind]:
                del self._selectors[kind]
        for selector in selectors:
            kind = (ref.namespace, selector.kind)
            self._selectors.setdefault(kind, {}).setdefault(ref, []).append(selector)
            self._kinds.setdefault(ref, set()).add(kind)


def _selects(selector: ResourceSelector, metadata: Mapping[str, Any]) -> bool:
    """Return whether a selector of the object's kind selects it; what a list leaves out of its items is not read."""
    if selector.name and metadata.get("name") != selector.name:
        return False
    return selector.labels is None or selector.labels.matches(metadata.get("labels"))
