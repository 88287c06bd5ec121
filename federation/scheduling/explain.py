"""Explanations: a decision as JSON for the journal. `explanations.py` reads them.

An explanation has everything that `fedctl why` prints: rejections with plugin and reasons, raw and normalized scores,
selections, and the steps of the division. Scores are lists in the order of `scores.clusters`, to stay small with many
clusters. Keys are stable, because later versions read them: add, do not rename.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from federation.scheduling.engine import Decision
from federation.scheduling.framework.costs import explain_costs
from federation.scheduling.framework.limits import explain_spread
from federation.scheduling.framework.orderedgroups import place_of
from federation.scheduling.framework.policygroups import GROUPS
from federation.scheduling.framework.topology import TOPOLOGY_SPREAD
from federation.scheduling.framework.types import Cluster, SchedulingMode


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
    if unit.pods.sets:
        explanation["pods"] = [
            {"name": each.name, "count": each.count, "request": dict(each.shape.request)} for each in unit.pods.sets
        ]
        explanation["isGang"] = unit.pods.is_gang
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
    if GROUPS.of(unit) and decision.filtered is not None:
        explanation["groups"] = {
            cluster.name: GROUPS.of(unit)[place].name
            for cluster in decision.filtered.feasible
            if (place := place_of(GROUPS.of(unit), cluster.name, cluster.labels)) is not None
        }
    if decision.division is not None:
        explanation["division"] = dict(decision.division.explanation)
    if TOPOLOGY_SPREAD.of(unit) and decision.is_success and decision.selections:
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
