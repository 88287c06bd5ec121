"""The tree of one object: the object, its policy and overrides, its clusters, wanted against ready. Pure.

It joins what `fedctl why` prints: the delivery (`/federation/v1/delivery`) and the newest decision of the journal.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.naturalorder import natural_key
from federation.planning.diagnosis.clusterstanding import Standing, standing_of, words_for
from federation.planning.diagnosis.objectsummary import Outcome
from federation.scheduling.explanations import rows
from federation.web.ui.waits import describe_drift, describe_toleration

_TONES = {Standing.UNDERWAY: "busy", Standing.SILENT: "unknown", Standing.REFUSED: "bad"}
_QUIET = frozenset(("PendingCreate", "CachedRetrievalFailed"))
"""Statuses about which `applied` says more."""
_WORDS = {"yes": "Up to date", "outdated": "Earlier version", "no": "Not there yet", "unknown": "Unknown"}
_REASONS_MAX = 10


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
    images: tuple[str, ...] = ()
    """Of the containers, as the cluster has them."""


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
    rejected: tuple[tuple[str, tuple[str, ...]], ...]
    """Reasons why clusters were not chosen, with those clusters, the reason of most clusters first."""


def grow(
    delivery: Mapping[str, Any],
    decision: Mapping[str, Any] | None,
    now: datetime,
    outcome: Outcome | None = None,
) -> ObjectTree:
    """Return the tree from the document of the delivery and the newest decision, None without one.

    `outcome` is how the object ended if it runs once: then replicas are neither wanted nor ready.
    """
    rows_in_order = sorted(delivery["clusters"], key=lambda row: natural_key(row["cluster"]))
    branches = tuple(_branch(row, now, outcome) for row in rows_in_order)
    explanation = (decision or {}).get("explanation") or {}
    policy = explanation.get("policy")
    facts = tuple(_fact(condition, branches) for condition in delivery["conditions"])
    tone, state = _overall(branches, facts, outcome)
    return ObjectTree(
        tone,
        state,
        _total([branch.wanted for branch in branches]),
        _total([branch.ready for branch in branches]),
        facts,
        policy if isinstance(policy, Mapping) else None,
        tuple(_override(text) for text in delivery.get("overridePolicies") or ()),
        branches,
        _rejections(explanation, {branch.cluster for branch in branches}),
    )


def _rejections(explanation: Mapping[str, Any], taken: AbstractSet[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, list[str]] = {}
    for row in rows(explanation):
        if row.rejected_by and row.name not in taken:
            found.setdefault(f"{row.rejected_by}: {'; '.join(row.reasons)}", []).append(row.name)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))[:_REASONS_MAX]
    return tuple((reason, tuple(sorted(names, key=natural_key))) for reason, names in ordered)


def _branch(row: Mapping[str, Any], now: datetime, outcome: Outcome | None) -> ClusterBranch:
    tone, state = state_in(row, outcome)
    notes = []
    if row.get("scaler"):
        notes.append(f'HorizontalPodAutoscaler "{row["scaler"]}" in the cluster owns the replicas')
    if until := parse_rfc3339(row.get("toleratedUntil")):
        notes.append(describe_toleration(until, now))
    if drift := row.get("drift"):
        notes.append(f"drift: {describe_drift(drift, now)}")
    message = "" if row["message"] == state else row["message"]
    wanted, ready = (None, None) if outcome else (row["wanted"], row["ready"])
    return ClusterBranch(
        row["cluster"], tone, state, message, wanted, ready, tuple(notes), tuple(row.get("images") or ())
    )


def state_in(row: Mapping[str, Any], outcome: Outcome | None) -> tuple[str, str]:
    """Return tone and state of an object in one cluster, by its row of the delivery."""
    if not row["placed"]:
        return "busy", "Leaving"
    standing = standing_of(row["status"])
    if row["status"] and standing in _TONES and row["status"] not in _QUIET:
        return _TONES[standing], words_for(row["status"])
    if outcome is not None and row["applied"] == "yes":
        return ("good", "Complete") if outcome is Outcome.COMPLETE else ("bad", "Failed")
    if row["applied"] == "unknown":
        return "unknown", "Last known"
    if row["applied"] != "yes":
        return "busy", _WORDS[row["applied"]]
    if row["wanted"] is not None and (row["ready"] or 0) < row["wanted"]:
        return "busy", "Starting"
    return "good", "Ready" if row["wanted"] is not None else _WORDS["yes"]


def _overall(branches: Sequence[ClusterBranch], facts: Sequence[Fact], outcome: Outcome | None) -> tuple[str, str]:
    """Return tone and state of the whole object: those of its worst cluster."""
    if not branches:
        return ("bad", "Not placed") if facts else ("unknown", "Not federated")
    if outcome is Outcome.FAILED:
        return "bad", "Failed"
    for tone, state in (("bad", "Not delivered"), ("unknown", "Last known state"), ("busy", "On its way")):
        if any(branch.tone == tone for branch in branches):
            return tone, state
    bad = next((fact for fact in facts if fact.tone == "bad"), None)
    if bad is not None:
        return "bad", bad.title
    return "good", "Complete" if outcome is Outcome.COMPLETE else "Delivered"


def _fact(condition: Mapping[str, Any], branches: Sequence[ClusterBranch]) -> Fact:
    """Return a condition. One about the clusters repeats what they say, so it has the tone of the worst and no text."""
    is_true = conditions.is_true([condition], str(condition.get("type")))
    title = str(condition.get("type"))
    words = {names.OVERRIDES_APPLIED: "Overrides applied"}.get(title, title)
    reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
    text = message or ("" if is_true else reason)
    title_shown = words if is_true else f"Not {words[:1].lower()}{words[1:]}"
    if not is_true and reason == names.REASON_CHECK_CLUSTERS and branches:
        tones = {branch.tone for branch in branches}
        worst = next((tone for tone in ("bad", "unknown", "busy") if tone in tones), "busy")
        concerned = sum(branch.tone == worst for branch in branches)
        return Fact(worst, title_shown, f"{concerned} of {to_count(len(branches), 'cluster')}")
    return Fact("good" if is_true else "bad", title_shown, text)


def _override(text: str) -> Mapping[str, str]:
    namespace, _, name = text.rpartition("/")
    return {"namespace": namespace, "name": name}


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
