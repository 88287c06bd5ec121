"""The tree of one object: the object, its policy and overrides, its clusters, wanted against ready. Pure.

It joins what `fedctl why` prints: the delivery (`/federation/v1/delivery`) and the newest decision of the journal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.scheduling.explain import rows

_TRANSIENT = frozenset(("", "OK", "Finished", "Kept", "PendingCreate", "CachedRetrievalFailed", "WaitingForRemoval"))
_WORDS = {"yes": "Up to date", "outdated": "Earlier version", "no": "Not there yet", "unknown": "Unknown"}
_REJECTED_MAX = 20


@dataclass(frozen=True, slots=True)
class ClusterBranch:
    """The object in one cluster. `tone` is "good", "busy", "bad" or "unknown"; `state` is the same for people."""

    cluster: str
    tone: str
    state: str
    message: str
    wanted: int | None
    ready: int | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A condition of the object: its tone, its title, its message."""

    tone: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ObjectTree:
    """Everything below the object. `policy` is None for objects that no policy placed."""

    tone: str
    state: str
    wanted: int | None
    ready: int | None
    facts: tuple[Fact, ...]
    policy: Mapping[str, str] | None
    overrides: tuple[Mapping[str, str], ...]
    branches: tuple[ClusterBranch, ...]
    rejected: tuple[tuple[str, str], ...]
    rejected_more: int


def grow(delivery: Mapping[str, Any], decision: Mapping[str, Any] | None) -> ObjectTree:
    """Return the tree from the document of the delivery and the newest decision, None without one."""
    branches = tuple(_branch(row) for row in delivery["clusters"])
    explanation = (decision or {}).get("explanation") or {}
    policy = explanation.get("policy")
    found = [(row.name, f"{row.rejected_by}: {'; '.join(row.reasons)}") for row in rows(explanation) if row.rejected_by]
    taken = {branch.cluster for branch in branches}
    rejected = [each for each in found if each[0] not in taken]
    facts = tuple(_fact(condition) for condition in delivery["conditions"])
    tone, state = _overall(branches, facts)
    return ObjectTree(
        tone,
        state,
        _total([branch.wanted for branch in branches]),
        _total([branch.ready for branch in branches]),
        facts,
        policy if isinstance(policy, Mapping) else None,
        tuple(_override(text) for text in delivery.get("overridePolicies") or ()),
        branches,
        tuple(rejected[:_REJECTED_MAX]),
        max(0, len(rejected) - _REJECTED_MAX),
    )


def _branch(row: Mapping[str, Any]) -> ClusterBranch:
    tone, state = _state(row)
    notes = []
    if row.get("scaler"):
        notes.append(f'HorizontalPodAutoscaler "{row["scaler"]}" in the cluster owns the replicas')
    if row.get("toleratedUntil"):
        notes.append(f"its taints are tolerated until {row['toleratedUntil']}, then the object leaves")
    if drift := row.get("drift"):
        paused = f"; corrections pause until {drift['pausedUntil']}" if drift["pausedUntil"] else ""
        notes.append(f"drift: {drift['message']}; written back {drift['corrections']} times{paused}")
    return ClusterBranch(row["cluster"], tone, state, row["message"], row["wanted"], row["ready"], tuple(notes))


def _state(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return tone and state of a row of the delivery."""
    if not row["placed"]:
        return "busy", "Leaving"
    if row["status"] not in _TRANSIENT:
        return "bad", row["status"]
    if row["applied"] == "unknown":
        return "unknown", "Last known"
    if row["applied"] != "yes":
        return "busy", _WORDS[row["applied"]]
    if row["wanted"] is not None and (row["ready"] or 0) < row["wanted"]:
        return "busy", "Starting"
    return "good", "Ready" if row["wanted"] is not None else _WORDS["yes"]


def _overall(branches: Sequence[ClusterBranch], facts: Sequence[Fact]) -> tuple[str, str]:
    """Return tone and state of the whole object: those of its worst cluster."""
    if not branches:
        return ("bad", "Not placed") if facts else ("unknown", "Not federated")
    for tone, state in (("bad", "Not delivered"), ("unknown", "Partly unknown"), ("busy", "On its way")):
        if any(branch.tone == tone for branch in branches):
            return tone, state
    bad = next((fact for fact in facts if fact.tone == "bad"), None)
    return ("bad", bad.title) if bad is not None else ("good", "Delivered")


def _fact(condition: Mapping[str, Any]) -> Fact:
    is_true = conditions.is_true([condition], str(condition.get("type")))
    title = str(condition.get("type"))
    words = {names.OVERRIDES_APPLIED: "Overrides applied"}.get(title, title)
    reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
    text = message or ("" if is_true else reason)
    return Fact("good" if is_true else "bad", words if is_true else f"Not {words[:1].lower()}{words[1:]}", text)


def _override(text: str) -> Mapping[str, str]:
    namespace, _, name = text.rpartition("/")
    return {"namespace": namespace, "name": name}


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
