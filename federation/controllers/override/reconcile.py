"""The steps that turn override policies into the overrides of one federated object.

One merge patch when something changed, none otherwise. When the policies cannot be found or do not fit, the overrides
that are stored stay, the controller keeps its turn (an object that never had its overrides must not reach a member
without them), and a warning event and the condition OverridesApplied=False say why. What could help is a change of the
object, of a policy or of a cluster, and each of these brings us back; so there is no retry by time.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from federation.api import conditions, names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, Object, Resource
from federation.base.clock import Clock
from federation.base.errors import Invalid, NotFound
from federation.client.protocol import Client, PatchType
from federation.planning import pipeline
from federation.planning.overrides.bindings import Bindings, PolicyNotFoundError, subject_of_federated
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policies import Policy
from federation.planning.overrides.storage import plan_turn
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import Recorder

_TIMES = ("lastUpdateTime",)


class Caches(Protocol):
    """What the reconciler reads; the controller owns the informers behind it."""

    def federated(self, key: Key) -> Object | None:
        """Return the cached federated object; without a namespace in the key it is a ClusterFederatedObject."""
        ...

    def type_of(self, federated: Object) -> FederatedType | None:
        """Return the federated type of the object's template."""
        ...

    def cluster(self, name: str) -> Object | None:
        """Return the cached FederatedCluster."""
        ...


def resource_of(key: Key) -> Resource:
    """Return the kind of the federated object with this key."""
    return FEDERATED_OBJECTS if key.namespace else CLUSTER_FEDERATED_OBJECTS


class Reconciler:
    """Brings the overrides of one federated object up to date per call."""

    def __init__(self, client: Client, caches: Caches, bindings: Bindings, recorder: Recorder, *, clock: Clock) -> None:
        self._client = client
        self._caches = caches
        self._bindings = bindings
        self._recorder = recorder
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        """Compute the overrides when it is our turn, and store them when they changed."""
        federated = self._caches.federated(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            return DONE
        type_ = self._caches.type_of(federated)
        if type_ is None or not pipeline.is_turn_of(federated, names.OVERRIDE_CONTROLLER, type_.controllers):
            return DONE
        try:
            policies = self._bindings.resolve(subject_of_federated(federated))
            patch = plan_turn(federated, type_.controllers, policies, self._caches.cluster)
        except OverrideError as error:
            await self._report_failure(key, federated, error)
            return DONE
        if patch is not None and not await self._store(key, federated, patch, policies):
            return DONE
        await self._report_success(key, federated)
        return DONE

    async def _store(self, key: Key, federated: Object, patch: Object, policies: list[Policy]) -> bool:
        """Write the patch; False when the object is gone or does not take it."""
        try:
            await self._patch(key, patch)
        except NotFound:
            return False
        except Invalid as error:
            applied = ", ".join(policy.display for policy in policies)
            await self._report_failure(key, federated, OverrideError(f"{applied}: {error}"))
            return False
        return True

    async def _patch(self, key: Key, patch: Object, *, subresource: str = "") -> None:
        await self._client.patch(
            resource_of(key),
            key.name,
            patch,
            patch_type=PatchType.MERGE,
            namespace=key.namespace,
            subresource=subresource,
            field_manager=names.FIELD_MANAGER,
        )

    async def _report_failure(self, key: Key, federated: Object, error: OverrideError) -> None:
        is_missing = isinstance(error, PolicyNotFoundError)
        reason = names.REASON_OVERRIDE_POLICY_NOT_FOUND if is_missing else names.REASON_OVERRIDE_POLICY_INVALID
        if not await self._set_condition(key, status="False", reason=reason, message=str(error)):
            return
        if is_missing:
            event, message = names.EVENT_MATCH_OVERRIDE_POLICY_FAILED, f"failed to match override policies: {error}"
        else:
            event, message = names.EVENT_PARSE_OVERRIDE_POLICY_FAILED, f"failed to parse overrides from {error}"
        self._recorder.event(federated, "Warning", event, message)

    async def _report_success(self, key: Key, federated: Object) -> None:
        """Take a failure back. An object that never failed has no condition, and costs no write."""
        if conditions.find(_conditions(federated), names.OVERRIDES_APPLIED) is None:
            return
        await self._set_condition(key, status="True", reason=names.REASON_OVERRIDES_APPLIED)

    async def _set_condition(self, key: Key, *, status: str, reason: str, message: str = "") -> bool:
        """Write our condition when it changes. The newest object is read first: others write the same list."""
        try:
            newest = await self._client.get(resource_of(key), key.name, key.namespace)
        except NotFound:
            return False
        held = _conditions(newest)
        wanted = conditions.set_condition(
            held,
            type_=names.OVERRIDES_APPLIED,
            status=status,
            reason=reason,
            message=message,
            now=self._clock.now(),
            time_fields=_TIMES,
        )
        if wanted is held:
            return False
        version = newest["metadata"]["resourceVersion"]
        patch: Object = {"metadata": {"resourceVersion": version}, "status": {"conditions": wanted}}
        await self._patch(key, patch, subresource="status")
        return True


def _conditions(federated: Mapping[str, Any]) -> list[dict[str, Any]]:
    held: list[dict[str, Any]] = (federated.get("status") or {}).get("conditions") or []
    return held
