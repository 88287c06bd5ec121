"""Explanations: a decision as JSON for the journal, and as a table for people.

An explanation has everything that `fedctl why` prints: rejections with plugin and reasons, raw and normalized scores,
selections, and the steps of the division. Scores are lists in the order of `scores.clusters`, to stay small with many
clusters; `rows` returns one row per cluster. Keys are stable, because later versions read them: add, do not rename.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from federation.scheduling.engine import Decision
from federation.scheduling.framework.costs import explain_costs
from federation.scheduling.framework.limits import explain_spread
from federation.scheduling.framework.types import Cluster, SchedulingMode


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One cluster in a decision. `scores` maps plugins to (raw, normalised); `replicas` None: as in the template."""

    name: str
    is_selected: bool = False
    rejected_by: str = ""
    reasons: tuple[str, ...] = ()
    scores: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    total: int | None = None
    replicas: int | None = None
    previous: int | None = None
    was_selected: bool = False
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def to_json(decision: Decision, context: Mapping[str, Any] | None = None) -> bytes:
    """Return the explanation as a JSON object; the fields of `context` (policy, triggers, …) come first."""
    return orjson.dumps({**(context or {}), **to_explanation(decision)})


def to_explanation(decision: Decision) -> dict[str, Any]:
    """Return the explanation as values that orjson can write."""
    unit = decision.unit
    explanation: dict[str, Any] = {
        "outcome": decision.outcome,
        "reason": decision.reason,
        "profile": decision.profile,
        "unit": {
            "kind": unit.gvk.kind,
            "mode": unit.mode,
            "strategy": unit.strategy,
            "desiredReplicas": unit.desired_replicas,
            "request": unit.request,
        },
        "clusters": decision.snapshot.names,
        "previous": unit.current,
        "placements": decision.placements,
    }
    if decision.filtered is not None and decision.filtered.rejected:
        explanation["rejected"] = {
            name: {"plugin": status.plugin, "reasons": status.reasons}
            for name, status in decision.filtered.rejected.items()
        }
    if decision.scored is not None:
        explanation["scores"] = {
            "clusters": decision.scored.totals.names,
            "plugins": [
                {"plugin": part.plugin, "weight": part.weight, "raw": part.raw, "normalised": part.normalised}
                for part in decision.scored.parts
            ],
            "totals": decision.scored.totals.scores,
        }
    if decision.selections:
        explanation["select"] = [{"plugin": step.plugin, "clusters": step.clusters} for step in decision.selections]
    if decision.division is not None:
        explanation["division"] = decision.division.explanation
    if unit.topology_spread and decision.is_success and decision.selections:
        explanation["topology"] = explain_spread(unit, _candidates(decision), decision.placements)
    if decision.snapshot.has_rates and (
        costs := explain_costs(unit, decision.snapshot.by_name, decision.placements or unit.current)
    ):
        explanation["costs"] = costs
    if decision.unplaced:
        explanation["unplaced"] = decision.unplaced
        if decision.division is not None and decision.division.because:
            explanation["unplacedBecause"] = decision.division.because
    if decision.ignored:
        explanation["ignored"] = [
            {"plugin": ignored.plugin, "point": ignored.point, "reasons": ignored.reasons}
            for ignored in decision.ignored
        ]
    if decision.remarks:
        explanation["remarks"] = decision.remarks
    if decision.failure is not None:
        explanation["failed"] = {"plugin": decision.failure.plugin, "reasons": decision.failure.reasons}
    return explanation


def in_force(explanation: Mapping[str, Any]) -> Mapping[str, int | None]:
    """Return the placement after a decision: an unsuccessful one keeps the previous placement."""
    placed: Mapping[str, int | None] = explanation.get("placements") or explanation.get("previous") or {}
    return placed


def is_decided(explanation: Mapping[str, Any]) -> bool:
    """Return whether there was a decision; otherwise it was deferred or impossible."""
    return "unit" in explanation


def is_in_force(explanation: Mapping[str, Any]) -> bool:
    """Return whether the decision was successful."""
    return is_decided(explanation) and bool(explanation.get("placements"))


def kept_placement(explanation: Mapping[str, Any]) -> str:
    """Return, in one line, the placement kept without a successful decision, "" for none."""
    if is_in_force(explanation):
        return ""
    return ", ".join(name if count is None else f"{name} {count}" for name, count in in_force(explanation).items())


def digest_of_failure(explanation: Mapping[str, Any]) -> bytes:
    """Return a hash that is equal for repeated failures: of object, policy, outcome and reasons, not scores."""
    fields = [explanation.get(key) for key in ("outcome", "reason", "policy", "rejected", "failed")]
    inputs = explanation.get("inputs") or {}
    fields += [inputs.get(key) for key in ("object", "policy", "profile")]
    return blake2b(orjson.dumps(fields), digest_size=16).digest()


def _candidates(decision: Decision) -> Sequence[Cluster]:
    """Return the clusters that could have been assigned the object or replicas."""
    if decision.unit.mode is SchedulingMode.DUPLICATE:
        return () if decision.filtered is None else decision.filtered.feasible
    return decision.selected or [decision.snapshot.by_name[name] for name in decision.selections[-1].clusters]


def rows(explanation: Mapping[str, Any]) -> list[ClusterRow]:
    """Return one row per cluster of a parsed explanation, selected ones first, then available, then rejected ones."""
    rejected = explanation.get("rejected") or {}
    placements, previous = explanation.get("placements") or {}, explanation.get("previous") or {}
    scores, remarks = explanation.get("scores") or {}, explanation.get("remarks") or {}
    index = {name: position for position, name in enumerate(scores.get("clusters") or ())}
    result = []
    for name in dict.fromkeys((*explanation.get("clusters", ()), *previous)):
        position, refusal = index.get(name), rejected.get(name) or {}
        result.append(
            ClusterRow(
                name=name,
                is_selected=name in placements,
                rejected_by=refusal.get("plugin", ""),
                reasons=tuple(refusal.get("reasons") or ()),
                scores={} if position is None else _scores_at(scores, position),
                total=None if position is None else scores["totals"][position],
                replicas=placements.get(name),
                previous=previous.get(name),
                was_selected=name in previous,
                remarks={plugin: tuple(said[name]) for plugin, said in remarks.items() if name in said},
            )
        )
    return sorted(result, key=lambda row: (not row.is_selected, bool(row.rejected_by), -(row.total or 0), row.name))


def _scores_at(scores: Mapping[str, Any], position: int) -> dict[str, tuple[int, int]]:
    return {part["plugin"]: (part["raw"][position], part["normalised"][position]) for part in scores["plugins"]}
