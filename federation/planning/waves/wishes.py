"""Wishes of users about a rollout or a policy change in waves: the fields `paused`, `approvedWave` and `abort`. Pure.

They are in the spec of a FederatedRollout, and in `spec.changeRollout` of a policy. Approval and abortion name the
revision that they are about, so they never touch a later one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Wishes:
    """The wishes of users. `abort` and `approved_revision` name a revision; 0 is none."""

    is_paused: bool = False
    abort: int = 0
    approved_revision: int = 0
    approved_wave: str = ""
    """This wave and all before it are approved."""


def read_wishes(fields: Mapping[str, Any]) -> Wishes:
    """Return the wishes in stored fields; AttributeError, TypeError or ValueError if they are malformed."""
    approved = fields.get("approvedWave") or {}
    return Wishes(
        bool(fields.get("paused")),
        int(fields.get("abort") or 0),
        int(approved.get("revision") or 0),
        str(approved.get("wave") or ""),
    )


def to_pause(*, is_paused: bool) -> dict[str, Any]:
    """Return the fields that keep further waves from starting, or let them start again."""
    return {"paused": is_paused}


def to_approval(revision: int, wave: str) -> dict[str, Any]:
    """Return the fields that approve a wave and all before it."""
    return {"approvedWave": {"revision": revision, "wave": wave}}


def to_abortion(revision: int) -> dict[str, Any]:
    """Return the fields that abort a rollout or change."""
    return {"abort": revision}
