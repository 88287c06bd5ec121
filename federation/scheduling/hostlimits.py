"""The host's limits of moves: settings that decisions depend on, as they do on objects. Pure.

Decision: docs/decisions/0265-a-plan-has-the-limits-of-its-host.md
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from federation.planning.failover.failoveroptions import FailoverOptions
from federation.planning.guard.ledger import GuardOptions


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings of the guard and of failover."""

    guard: GuardOptions = field(default_factory=GuardOptions)
    failover: FailoverOptions = field(default_factory=FailoverOptions)


def to_document(limits: Limits) -> dict[str, Any]:
    """Return limits as JSON, which `fedctl` asks the host for."""
    document: dict[str, Any] = msgspec.to_builtins(limits)
    return document


def from_document(document: Any) -> Limits:
    """Return the limits of a document. What it lacks or has wrongly is as it is by default."""
    try:
        return msgspec.convert(document, Limits)
    except msgspec.ValidationError:
        return Limits()
