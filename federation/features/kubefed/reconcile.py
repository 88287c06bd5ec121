"""The steps for one federated object of KubeFed: write what stands for it, remove the rest, report the status.

Everything is written on behalf of the authors of the federated object (`runtime/onbehalf.py`). It has the federated
object as its controlling owner, so deletion follows it, and `kubectl delete --cascade=orphan` leaves the native form
behind. What another owner controls is neither changed nor removed.
"""

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from federation.api import names
from federation.api.kubefedkinds import FEDERATED_KINDS, FEDERATED_NAMESPACES, SCALED_KINDS, FederatedKind
from federation.apimachinery.errors import ApiError, Conflict, NotFound
from federation.apimachinery.ownerreferences import controller_of, controller_reference
from federation.apimachinery.resources import NAMESPACES, Object, Resource
from federation.features.kubefed.names import (
    EVENT_KUBEFED_REFUSED,
    KUBEFED_MANAGER,
    REASON_PLACEMENT_FAILED,
    REASON_TEMPLATE_REFUSED,
)
from federation.features.kubefed.rules import Problem, plan_status
from federation.planning.authors import authors_of
from federation.planning.kubefed.nativeform import Derivation, derive, policy_name
from federation.runtime.controller import DONE, Result
from federation.runtime.events import WARNING
from federation.runtime.host import Host
from federation.runtime.informer import Informer
from federation.runtime.onbehalf import apply_for, writer_of

_RETRY_S = 15.0
"""Pause after a refusal, whose cause may lie in another object."""
_DYING_S = 1.0
"""Pause while an earlier object of the same name is being deleted."""


class FederatedKey(NamedTuple):
    """A federated object of KubeFed: its kind, namespace ("" for cluster-scoped ones) and name."""

    kind: str
    namespace: str
    name: str


class Reconciler:
    """Handles one federated object per call. `caches` hold all of them by kind, `policies` the propagation policies."""

    def __init__(self, host: Host, caches: Mapping[str, Informer], preferences: Informer, policies: Informer) -> None:
        self._client = host.client
        self._objects = host.objects
        self._caches = caches
        self._preferences = preferences
        self._policies = policies
        self._recorder = host.recorder
        self._clock = host.clock

    async def reconcile(self, key: FederatedKey) -> Result:
        """Bring the native object and its policies to the spec, and write the status."""
        federated = self._caches[key.kind].get(key.namespace, key.name)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            return DONE
        kind = FEDERATED_KINDS[key.kind]
        preference = self._preference(key)
        divided = await self._divided_replicas(federated, kind) if preference is None else None
        derivation = derive(federated, kind, preference, self._namespace(key), divided_replicas=divided)
        problem, requeue_after_s = None, None
        try:
            is_dying = await self._write(federated, kind, derivation)
        except ApiError as error:
            if error.retryable or isinstance(error, Conflict):
                raise
            problem, requeue_after_s = Problem(REASON_TEMPLATE_REFUSED, error.message), _RETRY_S
            self._recorder.event(_typed(federated, kind), WARNING, EVENT_KUBEFED_REFUSED, error.message)
        else:
            if is_dying:
                requeue_after_s = _DYING_S
            if derivation.undecided:
                problem = Problem(REASON_PLACEMENT_FAILED, derivation.undecided)
        status = plan_status(federated, self._propagated(kind, key), problem, self._clock.now())
        if status is not None:
            await self._client.patch_status(kind.resource, federated, status, field_manager=names.FIELD_MANAGER)
        return DONE if requeue_after_s is None else Result(requeue_after_s)

    async def _write(self, federated: Object, kind: FederatedKind, derivation: Derivation) -> bool:
        """Write and remove; return whether a written object is being deleted, so that it must be created again."""
        is_dying = False
        for resource, wanted in derivation.objects:
            written = await self._apply(federated, kind, resource, wanted)
            is_dying = is_dying or bool(written["metadata"].get("deletionTimestamp"))
        for resource, name in derivation.removed:
            await self._remove(federated, resource, name)
        return is_dying

    async def _apply(self, federated: Object, kind: FederatedKind, resource: Resource, wanted: Object) -> Object:
        metadata: Object = dict(wanted["metadata"])
        if resource != NAMESPACES:  # an object in a namespace cannot own the namespace
            owner = controller_reference(federated, kind.resource.api_version, kind.resource.kind)
            metadata["ownerReferences"] = [owner]
        body = {**wanted, "metadata": metadata}
        return await apply_for(authors_of(federated), self._client, resource, body, field_manager=KUBEFED_MANAGER)

    async def _remove(self, federated: Object, resource: Resource, name: str) -> None:
        namespace = federated["metadata"].get("namespace", "") if resource.namespaced else ""
        with contextlib.suppress(NotFound):
            held = await self._client.get(resource, name, namespace)
            owner = controller_of(held) or {}
            if owner.get("uid") == federated["metadata"]["uid"] and not held["metadata"].get("deletionTimestamp"):
                writer = writer_of(authors_of(federated))
                await self._client.delete(resource, name, namespace, uid=held["metadata"]["uid"], user=writer)

    async def _divided_replicas(self, federated: Object, kind: FederatedKind) -> int | None:
        """Return the total of the native object if its policy divides, which a lost preference does not end."""
        if kind.resource.kind not in SCALED_KINDS:
            return None
        metadata = federated["metadata"]
        policy = self._policies.get(metadata["namespace"], policy_name(federated, kind))
        if policy is None or policy["spec"].get("schedulingMode") != "Divide":
            return None
        try:
            native = await self._client.get(kind.target, metadata["name"], metadata["namespace"])
        except NotFound:
            return None
        return int(native["spec"].get("replicas", 1))

    def _preference(self, key: FederatedKey) -> Object | None:
        found = self._preferences.get(key.namespace, key.name)
        return found if found is not None and found["spec"]["targetKind"] == key.kind else None

    def _namespace(self, key: FederatedKey) -> Object | None:
        return self._caches[FEDERATED_NAMESPACES.kind].get(key.namespace, key.namespace)

    def _propagated(self, kind: FederatedKind, key: FederatedKey) -> Object | None:
        type_ = self._objects.types.for_resource(kind.target)
        if type_ is None:
            return None
        namespace = key.namespace if kind.target.namespaced else ""
        return self._objects.get(self._objects.key_for(type_, namespace, key.name))


def _typed(federated: Mapping[str, Any], kind: FederatedKind) -> Object:
    """Return the object with its kind, which API servers leave out of a list's items."""
    return {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, **federated}
