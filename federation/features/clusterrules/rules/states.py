"""The state of a rule in a cluster: a table, and times that must pass. Pure.

A rule becomes active when it has held for a time without interruption, and ends when it has been clear for a time
without interruption. So a condition that flaps faster than both changes nothing.

Decision: docs/decisions/0125-rules-for-clusters-wait-before-they-act.md
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.listening import Wait
from federation.features.clusterrules.rules.matching import Verdict

_NOTIFY_S = 3600
"""How long the end of a rule is remembered for its webhooks."""


class State(StrEnum):
    """Taints and other actions apply in Active and Clearing."""

    CALM = "Calm"
    PENDING = "Pending"
    ACTIVE = "Active"
    CLEARING = "Clearing"


NEXT: Mapping[tuple[State, Verdict], State] = {
    (State.CALM, Verdict.HOLDS): State.PENDING,
    (State.CALM, Verdict.CLEARS): State.CALM,
    (State.CALM, Verdict.NEITHER): State.CALM,
    (State.PENDING, Verdict.HOLDS): State.PENDING,
    (State.PENDING, Verdict.CLEARS): State.CALM,
    (State.PENDING, Verdict.NEITHER): State.CALM,
    (State.ACTIVE, Verdict.HOLDS): State.ACTIVE,
    (State.ACTIVE, Verdict.CLEARS): State.CLEARING,
    (State.ACTIVE, Verdict.NEITHER): State.ACTIVE,
    (State.CLEARING, Verdict.HOLDS): State.ACTIVE,
    (State.CLEARING, Verdict.CLEARS): State.CLEARING,
    (State.CLEARING, Verdict.NEITHER): State.ACTIVE,
}
"""The state after a look at the cluster."""
ELAPSED: Mapping[State, State] = {State.PENDING: State.ACTIVE, State.CLEARING: State.CALM}
"""The state after the time of one that ends by itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The state of a rule in a cluster, since when, and the last state that its webhooks were told."""

    state: State = State.CALM
    since: datetime | None = None
    told: str = ""

    @property
    def is_in_force(self) -> bool:
        """Whether the actions of the rule apply."""
        return self.state in (State.ACTIVE, State.CLEARING)

    @property
    def news(self) -> str:
        """The news for webhooks: "Active", "Cleared", or "" for nothing."""
        if self.is_in_force:
            return "" if self.told == "Active" else "Active"
        return "Cleared" if self.told == "Active" else ""


@dataclass(frozen=True, slots=True)
class Times:
    """How long a rule must hold, and how long it must be clear."""

    hold_s: float
    clear_s: float

    def of(self, state: State) -> float:
        """Return the time of a state that ends by itself."""
        return self.hold_s if state is State.PENDING else self.clear_s


def advance(entry: Entry, verdict: Verdict, times: Times, now: datetime, *, has_place: bool) -> Entry:
    """Return the entry after a look at the cluster.

    Without a place, because the rule is active in as many other clusters as it may, it stays pending.
    """
    following = NEXT[entry.state, verdict]
    since = entry.since if following is entry.state and entry.since is not None else now
    since = min(since, now)  # a time in the future is that of a wrong clock
    is_over = following in ELAPSED and (now - since).total_seconds() >= times.of(following)
    if is_over and (following is State.CLEARING or has_place):
        return replace(entry, state=ELAPSED[following], since=now)
    return replace(entry, state=following, since=None if following is State.CALM and not entry.told else since)


def with_half_left(entry: Entry, times: Times, now: datetime) -> Entry:
    """Return the entry after a time in which no process looked at the cluster: half of each time is left at least.

    Whether the rule held all the while is not known, and a webhook could not be called.
    """
    if entry.since is None or entry.state is State.ACTIVE:
        return entry
    limit_s = times.of(entry.state) if entry.state in ELAPSED else _NOTIFY_S
    return replace(entry, since=Wait(entry.since).with_half_left(limit_s, now).since)


def left_s(entry: Entry, times: Times, now: datetime) -> float | None:
    """Return when time alone changes the entry, None for never or when others have to make place."""
    if entry.state not in ELAPSED or entry.since is None:
        return None
    left = times.of(entry.state) - (now - entry.since).total_seconds()
    return left if left > 0 else None


def is_forgotten(entry: Entry, now: datetime) -> bool:
    """Return whether nothing of a calm rule has to be remembered any more."""
    if entry.state is not State.CALM:
        return False
    return not entry.news or entry.since is None or (now - entry.since).total_seconds() > _NOTIFY_S


def entries_of(text: str | None) -> dict[str, Entry]:
    """Return the entries of an annotation by rule; what cannot be read counts as calm."""
    try:
        found: Any = json.loads(text or "{}")
        return {str(rule): _entry(each) for rule, each in found.items()}
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return {}


def to_text(entries: Mapping[str, Entry]) -> str | None:
    """Return the annotation, None without entries."""
    found = {
        rule: {
            "state": entry.state.value,
            **({"since": to_rfc3339(entry.since)} if entry.since is not None else {}),
            **({"told": entry.told} if entry.told else {}),
        }
        for rule, entry in sorted(entries.items())
    }
    return json.dumps(found, separators=(",", ":")) if found else None


def _entry(value: Mapping[str, Any]) -> Entry:
    since = value.get("since")
    return Entry(State(value["state"]), from_rfc3339(str(since)) if since else None, str(value.get("told") or ""))
