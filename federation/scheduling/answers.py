"""The answers of gates: why an object is not decided now. Pure."""

from dataclasses import dataclass

from federation.scheduling.triggers import TriggerComparison


@dataclass(frozen=True, slots=True)
class Deferred:
    """The placement stays: nothing changed, or only what the policy does not follow."""

    comparison: TriggerComparison


@dataclass(frozen=True, slots=True)
class Wait:
    """The placement stays because no decision is possible; `reason` is a constant, `message` is for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The object is not scheduled at all."""

    message: str


@dataclass(frozen=True, slots=True)
class Leave:
    """The object has to leave its clusters, and waits for admission to others."""

    message: str


Answer = Deferred | Wait | Skipped | Leave
"""An answer of a gate about an object that does not go on."""
