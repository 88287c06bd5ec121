"""A plan and its violations as the status of a TopologySpreadPlan, with conditions. Pure: the caller brings `now`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.conditions import Condition
from federation.features.topologyspreadplan.names import (
    CONSTRAINTS_APPLIED,
    PLANNED,
    REASON_APPLY_REFUSED,
    REASON_CONSTRAINTS_APPLIED,
    REASON_DEADLOCK_POSSIBLE,
    REASON_NO_SHARDS,
    REASON_NO_VIOLATIONS,
    REASON_PLANNED,
    REASON_REFUSED,
    REASON_UNDECIDED,
    REASON_VIOLATIONS,
    SPREAD_SATISFIED,
)
from federation.features.topologyspreadplan.rules.check import Violation, ViolationKey
from federation.features.topologyspreadplan.rules.feasibility import Severity
from federation.features.topologyspreadplan.rules.planner import Avoidance, Outcome, Plan
from federation.features.topologyspreadplan.rules.search import SearchOutcome, SearchResult
from federation.features.topologyspreadplan.rules.shardedservice import Limits, Skews

VIOLATIONS_MAX = 100
"""Violations in a status."""
_CONSTRAINTS_MAX = 500
"""StatefulSets in a status."""


def plan_to_json(plan: Plan, stateful_sets: Sequence[str]) -> dict[str, Any]:
    """Return the fields of the status that describe the plan; the StatefulSets are those of the shards, in order.

    Shards without a StatefulSet are named by number, such as #3.
    """
    service = plan.service
    stateful_sets = [*stateful_sets, *(f"#{number}" for number in range(len(stateful_sets), service.shards))]
    status: dict[str, Any] = {
        "pods": service.pods,
        "shards": service.shards,
        "limits": _limits(plan.limits),
        "verdict": _verdict(plan),
    }
    if plan.zones:
        status["constraints"] = [
            _constraints(name, plan.zones_of(number), plan.skews)
            for number, name in enumerate(stateful_sets[:_CONSTRAINTS_MAX])
        ]
    if len(service.clusters) > 1 and plan.assignment is not None:
        status["clusters"] = [_cluster(plan, cluster, stateful_sets) for cluster in service.clusters]
    if plan.findings:
        status["message"] = "; ".join(finding.message for finding in plan.findings)
    return status


def plan_document(plan: Plan, stateful_sets: Sequence[str]) -> dict[str, Any]:
    """Return the plan with all findings and both ways to avoid a deadlock, for `fedctl topology plan`."""
    document = plan_to_json(plan, stateful_sets)
    document["findings"] = [
        {"reason": each.reason, "severity": str(each.severity), "message": each.message, "isRefused": each.is_refused}
        for each in plan.findings
    ]
    if plan.relaxation is not None:
        document["relaxation"] = {"node": plan.relaxation.node} | (
            {"zone": plan.relaxation.zone} if plan.relaxation.zone is not None else {}
        )
    if plan.assignment is not None:
        document["assignment"] = [list(zones) for zones in plan.assignment]
    return document


def _limits(limits: Limits) -> dict[str, int]:
    return {"node": limits.node} | ({"zone": limits.zone} if limits.zone is not None else {})


def _constraints(name: str, zones: Sequence[str], skews: Skews) -> dict[str, Any]:
    own: dict[str, Any] = {"statefulSet": name, "nodeMaxSkew": skews.node, "zones": list(zones)}
    return own | ({"zoneMaxSkew": skews.zone} if skews.zone is not None else {})


def _cluster(plan: Plan, cluster: str, stateful_sets: Sequence[str]) -> dict[str, Any]:
    zones = [zone.name for zone in plan.service.zones if zone.cluster == cluster]
    replicas = {
        name: count
        for number, name in enumerate(stateful_sets)
        if (count := len(set(plan.zones_of(number)).intersection(zones)))
    }
    pods = sum(len(set(names).intersection(zones)) for names in plan.zones)
    return {"cluster": cluster, "pods": pods, "replicas": replicas, "zones": zones}


def _verdict(plan: Plan) -> dict[str, Any]:
    verdict: dict[str, Any] = {
        "result": plan.outcome,
        "avoidance": plan.avoidance,
        "message": describe(plan),
    }
    if plan.search is not None:
        verdict["states"] = plan.search.states
        if plan.search.verdict is not SearchOutcome.TOO_LARGE:
            verdict["worstCase"] = _worst_case(plan, plan.search)
    return verdict


def _worst_case(plan: Plan, search: SearchResult) -> dict[str, int]:
    is_zoned = plan.skews.zone is not None
    return {"node": search.maxima.node} | ({"zone": search.maxima.domain} if is_zoned else {})


def describe(plan: Plan) -> str:
    """Return the verdict in one sentence."""
    if plan.outcome is Outcome.REFUSED:
        reasons = [finding.message for finding in plan.findings if finding.is_refused]
        if not plan.service.shards:
            return "there are no shards"
        return "; ".join(reasons) or "no assignment of the shards to zones keeps the limits"
    if plan.outcome is Outcome.TOO_LARGE:
        return "the search stopped at its limit of states; nothing is known about deadlocks"
    if plan.outcome is Outcome.DEADLOCK:
        return "a deadlock is reachable, and neither larger maxSkew nor zones per shard avoid it"
    if plan.avoidance is Avoidance.RELAXED:
        return f"no deadlock is reachable, because maxSkew is raised to {format_skews(plan.skews)}"
    if plan.avoidance is Avoidance.PINNED:
        return "no deadlock is reachable, because each StatefulSet is pinned to its zones"
    return "no deadlock is reachable"


def format_skews(skews: Skews) -> str:
    """Return values of maxSkew for a message."""
    zone = "" if skews.zone is None else f", zone {skews.zone}"
    return f"node {skews.node}{zone}"


def violations_to_json(
    violations: Sequence[Violation], before: Sequence[Mapping[str, Any]] | None, now: datetime
) -> list[dict[str, Any]]:
    """Return the violations for a status; those that were there before keep the time of their first observation."""
    since = {key_of(each): each.get("since") for each in before or ()}
    return [
        violation_to_json(violation) | {"since": since.get(violation.key) or to_rfc3339(now)}
        for violation in violations[:VIOLATIONS_MAX]
    ]


def violation_to_json(violation: Violation) -> dict[str, Any]:
    """Return a violation in the form of a status, without its time."""
    fields = {"count": violation.count, "limit": violation.limit, "domain": violation.domain or None}
    return {
        "rule": violation.rule,
        "severity": str(violation.severity),
        "message": violation.message,
        **{key: value for key, value in fields.items() if value is not None},
    }


def key_of(violation: Mapping[str, Any]) -> ViolationKey:
    """Return the key of a violation in a status."""
    return str(violation.get("rule")), str(violation.get("domain") or "")


def plan_condition(present: list[Condition], plan: Plan, now: datetime) -> list[Condition]:
    """Return the conditions with `Planned` for this plan."""
    reasons = {
        Outcome.FREE: ("True", REASON_PLANNED),
        Outcome.DEADLOCK: ("False", REASON_DEADLOCK_POSSIBLE),
        Outcome.TOO_LARGE: ("Unknown", REASON_UNDECIDED),
        Outcome.REFUSED: ("False", REASON_REFUSED if plan.service.shards else REASON_NO_SHARDS),
    }
    status, reason = reasons[plan.outcome]
    message = describe(plan)
    return conditions.set_condition(present, type_=PLANNED, status=status, reason=reason, message=message, now=now)


def applied_condition(present: list[Condition], problems: Mapping[str, str], now: datetime) -> list[Condition]:
    """Return the conditions with `ConstraintsApplied`; `problems` has a message by StatefulSet."""
    if not problems:
        message = "all StatefulSets of the host have their constraints"
        return conditions.set_condition(
            present,
            type_=CONSTRAINTS_APPLIED,
            status="True",
            reason=REASON_CONSTRAINTS_APPLIED,
            message=message,
            now=now,
        )
    name, problem = next(iter(problems.items()))
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return conditions.set_condition(
        present,
        type_=CONSTRAINTS_APPLIED,
        status="False",
        reason=REASON_APPLY_REFUSED,
        message=f"{name}: {problem}{more}"[:1024],
        now=now,
    )


def satisfied_condition(present: list[Condition], violations: Sequence[Violation], now: datetime) -> list[Condition]:
    """Return the conditions with `SpreadSatisfied`: True while no violation is critical or a warning."""
    serious = [violation for violation in violations if violation.severity != Severity.INFO]
    if not serious:
        return conditions.set_condition(
            present,
            type_=SPREAD_SATISFIED,
            status="True",
            reason=REASON_NO_VIOLATIONS,
            message="the pods are spread as required",
            now=now,
        )
    more = f" (and {len(serious) - 1} more)" if len(serious) > 1 else ""
    return conditions.set_condition(
        present,
        type_=SPREAD_SATISFIED,
        status="False",
        reason=REASON_VIOLATIONS,
        message=f"{serious[0].rule}: {serious[0].message}{more}",
        now=now,
    )
