"""The steps that turn override policies into the overrides of one federated object.

One merge patch when something changed, none otherwise; where nothing else is to be done, it goes with the patch of the
scheduler. A cluster whose overrides cannot be computed is recorded in the same patch: sync holds the object there and
delivers it to the others. A cluster in which the guard holds a policy keeps its earlier overrides (`replicaguard.py`).
When a policy is missing, stored overrides stay and the controller stays in `pending-controllers`, because an object
without its overrides must not reach a member. A warning event and the condition OverridesApplied=False give the reason.
Only an approval, or a change of the object, of a policy or of a cluster can help, and each of them triggers a
reconcile, so there is no timed retry, except in a namespace without room for overrides.
"""

from collections.abc import Callable

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.errors import Invalid
from federation.apimachinery.resources import Object
from federation.controllers.override.names import (
    EVENT_MATCH_OVERRIDE_POLICY_FAILED,
    EVENT_OVERRIDES_HELD,
    EVENT_PARSE_OVERRIDE_POLICY_FAILED,
    REASON_OVERRIDE_POLICY_INVALID,
    REASON_OVERRIDE_POLICY_NOT_FOUND,
    REASON_OVERRIDES_APPLIED,
)
from federation.controllers.override.replicaguard import OverrideGuard
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.overrides.entries import plan_override_patch
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policies import Policy
from federation.planning.overrides.policymatching import Bindings, PolicyNotFoundError, subject_of_federated
from federation.runtime.controller import DONE, Key, Result, key_of
from federation.runtime.events import Recorder
from federation.runtime.federatedobjects import FederatedObjects

WRITER = "override"
_FULL_RETRY_S = 60.0
"""Until failed overrides of an object in a full namespace are computed again."""


class Reconciler:
    """Updates the overrides of one federated object per call."""

    def __init__(
        self,
        objects: FederatedObjects,
        bindings: Bindings,
        recorder: Recorder,
        *,
        guard: OverrideGuard,
        is_full: Callable[[str], bool],
        cluster: Callable[[str], Object | None],
    ) -> None:
        self._objects = objects
        self._bindings = bindings
        self._recorder = recorder
        self._guard = guard
        self._is_full = is_full
        self._cluster = cluster

    def complete(self, federated: Object) -> Object | None:
        """Return the overrides as a patch that goes with the write of the previous step of the pipeline.

        None if that step is not done yet, and if there is more to do than one write: report a failure or its end, or
        be permitted by the guard. `reconcile` does that when the object is written.
        """
        type_, key = self._objects.type_of(federated), key_of(federated)
        held = (federated.get("status") or {}).get("conditions")
        if (
            type_ is None
            or federated["metadata"].get("deletionTimestamp")
            or not pendingcontrollers.is_at_head(federated, names.OVERRIDE_CONTROLLER)
            or conditions.find(held, names.OVERRIDES_APPLIED) is not None
        ):
            return None
        try:
            policies = self._bindings.resolve(subject_of_federated(federated))
        except OverrideError:
            return None
        is_full = self._is_full(key[0])
        plan = plan_override_patch(federated, type_.controllers, policies, self._cluster, is_full=is_full)
        if plan.patch is None or plan.failures or not self._guard.lets_pass(key, federated, type_, plan.patch):
            return None
        return plan.patch

    async def reconcile(self, key: Key) -> Result:
        """Compute the overrides when the controller may act, and store them when they changed."""
        federated = self._objects.get(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            self._guard.withdraw(key)
            return DONE
        type_ = self._objects.type_of(federated)
        if type_ is None or not pendingcontrollers.dependencies_fulfilled(
            federated, names.OVERRIDE_CONTROLLER, type_.controllers
        ):
            self._objects.defer(key, writer=WRITER)
            return DONE
        try:
            policies = self._bindings.resolve(subject_of_federated(federated))
        except OverrideError as error:
            await self._report_failure(key, federated, error)
            return DONE
        is_full = self._is_full(key[0])
        plan = plan_override_patch(federated, type_.controllers, policies, self._cluster, is_full=is_full)
        permitted = self._guard.rule(key, federated, type_, policies, plan.patch)
        if permitted.wait_s > 0:
            return Result(requeue_after_s=permitted.wait_s)
        if permitted.changes_plan:
            plan = plan_override_patch(
                federated,
                type_.controllers,
                policies,
                self._cluster,
                kept=permitted.kept,
                is_full=is_full,
                guarded=permitted.annotations,
            )
        if plan.patch is not None and not await self._store(key, federated, plan.patch, policies):
            return DONE
        if plan.failures:
            await self._report_failure(key, federated, OverrideError("; ".join(plan.failures)))
            if is_full:
                return Result(requeue_after_s=_FULL_RETRY_S)
        elif permitted.kept:
            await self._report_held(key, federated, permitted.message)
        else:
            await self._report_success(key, federated)
        return DONE

    async def _store(self, key: Key, federated: Object, patch: Object, policies: list[Policy]) -> bool:
        """Write the patch; return False when the object is gone or the API server refuses the result."""
        try:
            return await self._objects.patch(key, federated, patch, writer=WRITER) is not None
        except Invalid as error:
            applied = ", ".join(policy.display for policy in policies)
            await self._report_failure(key, federated, OverrideError(f"{applied}: {error}"))
            return False

    async def _report_failure(self, key: Key, federated: Object, error: OverrideError) -> None:
        is_missing = isinstance(error, PolicyNotFoundError)
        reason = REASON_OVERRIDE_POLICY_NOT_FOUND if is_missing else REASON_OVERRIDE_POLICY_INVALID
        if not await self._objects.set_condition(
            key, names.OVERRIDES_APPLIED, status="False", reason=reason, message=str(error), writer=WRITER
        ):
            return
        if is_missing:
            event, message = EVENT_MATCH_OVERRIDE_POLICY_FAILED, f"failed to match override policies: {error}"
        else:
            event, message = EVENT_PARSE_OVERRIDE_POLICY_FAILED, f"failed to parse overrides from {error}"
        self._recorder.event(federated, "Warning", event, message)

    async def _report_held(self, key: Key, federated: Object, message: str) -> None:
        if await self._objects.set_condition(
            key, names.OVERRIDES_APPLIED, status="False", reason=names.REASON_HELD, message=message, writer=WRITER
        ):
            self._recorder.event(federated, "Warning", EVENT_OVERRIDES_HELD, message)

    async def _report_success(self, key: Key, federated: Object) -> None:
        """Report that an earlier failure is over. An object that never failed has no condition and costs no write."""
        held = (federated.get("status") or {}).get("conditions")
        if conditions.find(held, names.OVERRIDES_APPLIED) is not None:
            reason = REASON_OVERRIDES_APPLIED
            await self._objects.set_condition(key, names.OVERRIDES_APPLIED, status="True", reason=reason, writer=WRITER)
