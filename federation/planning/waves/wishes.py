"""Wishes of users about a rollout or a policy change in waves: to pause, approve, abort or roll back. Pure.

They are in the spec of a FederatedRollout, and in `spec.changeRollout` of a policy. All but a pause name the revision
that they are about, so they never touch a later one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Wishes:
    """The wishes of users. `abort`, `roll_back` and `approved_revision` name a revision; 0 is none."""

    is_paused: bool = False
    abort: int = 0
    roll_back: int = 0
    approved_revision: int = 0
    approved_wave: str = ""
    """This wave and all before it are approved."""
    reason: str = ""
    """Why they are approved after a failure."""


def override_reason(wishes: Wishes, revision: int) -> str:
    """Return why this revision went on although a wave failed, "" if it did not."""
    return wishes.reason if wishes.approved_revision == revision else ""


def check_reason(failure: str, reason: str) -> None:
    """Raise ConfigurationError if a wave is approved after a failure without a reason."""
    if failure and not reason:
        raise ConfigurationError(f"a wave has failed ({failure}): give a reason to go on all the same, or roll back")


def read_wishes(fields: Mapping[str, Any]) -> Wishes:
    """Return the wishes in stored fields; AttributeError, TypeError or ValueError if they are malformed."""
    approved = fields.get("approvedWave") or {}
    return Wishes(
        bool(fields.get("paused")),
        int(fields.get("abort") or 0),
        int(fields.get("rollBack") or 0),
        int(approved.get("revision") or 0),
        str(approved.get("wave") or ""),
        str(approved.get("reason") or ""),
    )


def to_pause(*, is_paused: bool) -> dict[str, Any]:
    """Return the fields that keep further waves from starting, or let them start again."""
    return {"paused": is_paused}


def to_approval(revision: int, wave: str, reason: str = "") -> dict[str, Any]:
    """Return the fields that approve a wave and all before it; a wave after one that failed needs a reason."""
    return {"approvedWave": {"revision": revision, "wave": wave, "reason": reason or None}}


def to_abortion(revision: int) -> dict[str, Any]:
    """Return the fields that abort a rollout or change."""
    return {"abort": revision}


def to_return(revision: int) -> dict[str, Any]:
    """Return the fields that give back what it was before to all that a rollout or change has reached."""
    return {"rollBack": revision}
