"""Changes of a policy in waves of objects: `spec.changeRollout` and `status.changeRollout` of all kinds of policies.

An extension of this project. `planning/waves/changerules.py` and `planning/waves/policychanges.py` read them.

Reference: docs/reference/policy-changes.md.
"""

from typing import Annotated

from pydantic import Field

from federation.api.v1alpha1.base import AnyObject, DateTime, Int64, Model, NonNegative
from federation.api.v1alpha1.common import TypedRefCount
from federation.api.v1alpha1.rolloutwaves import OnFailure, RolloutObjective, WaveName, names_of_waves

_Seconds = Annotated[int, Field(ge=0, le=604_800, json_schema_extra={"format": "int32"})]


class ChangeGate(Model):
    """Conditions on the objects of a wave that must hold before the next wave starts. Every given part must hold."""

    healthy: bool = True
    """Whether all objects of the wave must be delivered and healthy in their clusters. One that was not before the
    wave, or that its users have changed since, does not count."""
    objectives: Annotated[
        list[RolloutObjective] | None,
        Field(
            max_length=5, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        ),
    ] = None
    """What Prometheus must have measured about the objects of the wave, compared with before and with objects that
    wait."""
    soak_seconds: _Seconds = 0
    """How long the gate must hold without interruption."""


class ChangeWave(Model):
    """Objects that get a change of the policy together."""

    gate: ChangeGate = ChangeGate()
    """The conditions that must hold before the next wave starts."""
    name: WaveName
    """The name of the wave, unique in the list."""
    object_selector: Annotated[dict[str, str] | None, Field(max_length=32)] = None
    """Labels that the objects of the wave must carry. Absent matches every object."""
    objects: Annotated[int | None, Field(ge=1, le=1_000_000, json_schema_extra={"format": "int32"})] = None
    """The most objects of the wave. Absent takes all that match."""
    pause: bool = False
    """Whether the wave starts only after approval."""
    pause_after: bool = False
    """Whether the wave after it starts only after approval, also if that is the last one, remaining."""
    timeout_seconds: Annotated[int, Field(ge=1, le=604_800, json_schema_extra={"format": "int32"})] = 600
    """How long the gate may take until it holds. After that the change has failed."""


class ApprovedChange(Model):
    """The approval of a wave of a change, and of all waves before it."""

    revision: Int64
    """The revision of the change that is approved, see status.changeRollout.revision. It approves no later change."""
    wave: str
    """The name of the wave."""
    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Why the change goes on although a wave has failed; `fedctl rollout status` shows it."""


class ChangeRollout(Model):
    """The order in which objects get a change of the policy. A change of this field alone is no change."""

    model_config = names_of_waves("objects")

    abort: Int64 | None = None
    """The revision of the change to abort, see status.changeRollout.revision. It counts as a failure."""
    approved_wave: ApprovedChange | None = None
    """The last wave that may start although it pauses before, or although the change has failed."""
    on_failure: OnFailure = OnFailure.ROLL_BACK
    """The behaviour when a gate does not hold in time, or the change is aborted: RollBack returns all objects to the
    policy as it was before; Pause keeps the changed ones."""
    paused: bool = False
    """Whether no other wave starts."""
    roll_back: Int64 | None = None
    """The revision of the change to take back, see status.changeRollout.revision: all objects return to the policy
    as it was before."""
    waves: Annotated[
        list[ChangeWave],
        Field(min_length=1, max_length=20, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ]
    """The waves, in order. After them, the wave remaining takes all other objects."""


class ChangeWaveStatus(Model):
    """The progress of one wave."""

    bound: str | None = None
    """The last place in the order of objects that the wave takes; absent before it starts."""
    held_since: DateTime | None = None
    """Since when its gate has held; absent if it does not hold."""
    is_done: bool = False
    """Whether it is complete."""
    labels: dict[str, str] | None = None
    """The labels that its objects carry."""
    name: str
    """The name of the wave."""
    objects: NonNegative = 0
    """The number of objects when it started."""
    started_at: DateTime | None = None
    """When it started; absent before. It is moved forward by the time that does not count against its timeout."""
    stopped_at: DateTime | None = None
    """Since when no time counts against its timeout: its gate holds, its clusters cannot report, or the change is
    paused."""
    taken_at: DateTime | None = None
    """When it took its objects. What their users change from then on proves nothing."""


class ChangeRolloutStatus(Model):
    """The last change of the policy in waves."""

    begun_at: DateTime | None = None
    """When it began."""
    content: str
    """A hash of the spec that it is about."""
    earlier: AnyObject
    """The policy as it was before the change; after it, as it is now."""
    message: str | None = None
    """What the change waits for; absent if it does not."""
    paused_since: DateTime | None = None
    """Since when it has been paused. The time does not count against the timeout of a wave."""
    reason: str | None = None
    """Why it has failed; absent if it has not."""
    revision: NonNegative
    """The number of changes in waves, this one included."""
    state: str
    """Complete, Progressing, Stopped, RollingBack or RolledBack."""
    unhealthy_before: list[str] | None = None
    """Objects of the current wave that prove nothing: they were not healthy before it, or their users have changed them
    since. NAMESPACE/* are all objects of a namespace."""
    waves: list[ChangeWaveStatus] | None = None
    """The waves, in order."""


class PolicyStatus(Model):
    """The objects that refer to a policy, and its last change in waves."""

    change_rollout: ChangeRolloutStatus | None = None
    """The last change of the policy in waves; absent without spec.changeRollout."""
    ref_count: NonNegative | None = None
    """The number of objects that refer to the policy."""
    typed_ref_count: list[TypedRefCount] | None = None
    """The number of objects that refer to the policy, by resource."""
