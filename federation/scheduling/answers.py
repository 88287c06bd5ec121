"""The answers of gates and permits: whether an object is decided now, and whether its decision is written. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from federation.scheduling.framework.profile import Profile
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.movecauses import NO_CAUSE, QuietCauses
from federation.scheduling.occasions import Occasion
from federation.scheduling.policyspec import Policy
from federation.scheduling.triggers import TriggerComparison


@dataclass(frozen=True, slots=True)
class Deferred:
    """The placement stays: nothing changed, or only what the policy does not follow."""

    comparison: TriggerComparison


@dataclass(frozen=True, slots=True)
class Wait:
    """The placement stays; `reason` is a constant, `message` is for people.

    Without a reason the object goes on in a moment, and nothing is written or reported. An event ends the wait, or the
    time `after_s`.
    """

    reason: str
    message: str
    after_s: float | None = None
    placements: Mapping[str, int | None] | None = None
    """The part of a decision that is written while its move waits, None for nothing."""
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    """Annotations to write with these placements."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """The object is not scheduled at all."""

    message: str


@dataclass(frozen=True, slots=True)
class Leave:
    """The object has to leave its clusters, and waits for admission to others."""

    message: str
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    """Annotations to write when it leaves."""


Answer = Deferred | Wait | Skipped | Leave
"""An answer of a gate about an object that does not go on."""


@dataclass(frozen=True, slots=True)
class Due:
    """The object is to be scheduled: the inputs of the engine, and the triggers to store with the decision."""

    unit: SchedulingUnit
    profile: Profile
    policy: Policy
    triggers: str
    comparison: TriggerComparison
    ignored_annotations: Mapping[str, str]
    """Overriding annotations that have no effect, and why."""
    divides: bool = False
    """Whether the policy or an annotation asks for Divide, also for a kind that cannot be divided."""
    is_spread: bool = False
    """Whether a WorkloadSpread targets the object."""
    quiet: QuietCauses = NO_CAUSE
    """Why it is scheduled if nothing of it changed."""
    occasion: Occasion | None = None
    """The other inputs of the assessment."""


Assessment = Due | Answer
