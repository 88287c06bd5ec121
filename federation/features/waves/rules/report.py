"""The status of a FederatedRollout from a plan, and the wishes in its spec. Pure.

The status is the only memory of a rollout, so that a restart continues it. `planning/waves/rolloutstatus.py` reads it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339_micro
from federation.features.waves import names as wavenames
from federation.features.waves.rules.waveplan import Plan
from federation.planning.status.readiness import Counts
from federation.planning.waves.waverecord import (
    ClusterRecord,
    Observed,
    Phase,
    Record,
    WaveRecord,
    clusters_of_wave,
    current_wave,
    following_wave,
)

Templates = Mapping[str, Mapping[str, Any]]
"""Pod templates by template revision."""
_PROBLEMS_MAX = 5
_ROLLED_BACK = (Phase.ROLLING_BACK, Phase.ROLLED_BACK)


def templates_of(status: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Return the stored pod templates of a status by template revision."""
    return {entry["revision"]: entry["template"] for entry in (status or {}).get("templates") or ()}


def settled_of(status: Mapping[str, Any] | None) -> str:
    """Return the revision of the workload's own pod template at the last complete rollout, "" if it is not known."""
    return str((status or {}).get("settled") or "")


def to_status(
    plan: Plan,
    before: Mapping[str, Any] | None,
    observed: Mapping[str, Observed],
    templates: Templates,
    pods: Mapping[str, Counts],
    *,
    policy: str,
    generation: int,
    now: datetime,
    settled: str = "",
) -> dict[str, Any]:
    """Return the status of the FederatedRollout; absent values are left out.

    `pods` are the counts by cluster. `settled` is the revision of the workload's own pod template, without overrides,
    at the last complete rollout.
    """
    record, current = plan.record, current_wave(plan.record)
    changed = [name for name, cluster in record.clusters.items() if cluster.wave]
    done = sum(observed[name].live == record.clusters[name].target for name in changed)
    status = {
        "observedGeneration": generation,
        "policy": policy,
        "revision": record.revision,
        "state": record.phase.value,
        "wave": current.name if current is not None else "",
        "progress": f"{done}/{len(changed)}",
        "message": plan.waits,
        "failure": record.reason,
        "pausedSince": _text(record.paused_since),
        "waves": [_wave(plan, wave) for wave in record.waves],
        "clusters": [
            _cluster(name, cluster, observed[name], plan) | _counts(pods.get(name))
            for name, cluster in sorted(record.clusters.items())
        ],
        "templates": [{"revision": revision, "template": templates[revision]} for revision in sorted(templates)],
        "replaced": [{"revision": new, "earlier": record.replaced[new]} for new in sorted(record.replaced)],
        "settled": settled,
        "conditions": _conditions((before or {}).get("conditions"), plan, observed, now),
    }
    return {key: value for key, value in status.items() if value not in ("", None, [])}


def _wave(plan: Plan, wave: WaveRecord) -> dict[str, Any]:
    entry = {
        "name": wave.name,
        "state": _state(plan, wave),
        "clusters": clusters_of_wave(plan.record, wave.name),
        "startedAt": _text(wave.started_at),
        "gateHeldSince": _text(wave.held_since),
    }
    return {key: value for key, value in entry.items() if value is not None}


def _state(plan: Plan, wave: WaveRecord) -> str:
    record = plan.record
    if wave.is_done:
        return "Complete"
    if current_wave(record) is not wave:
        return "Pending"
    if record.phase is not Phase.PROGRESSING:
        return "Failed"
    if plan.is_approval_needed:
        return "WaitingForApproval"
    if wave.started_at is None:
        return "Paused"
    return "Progressing" if wave.held_since is None else "Soaking"


def _cluster(name: str, cluster: ClusterRecord, seen: Observed, plan: Plan) -> dict[str, Any]:
    is_restored = name in plan.restored
    is_waiting = seen.live != (cluster.good if is_restored else cluster.target)
    message = seen.problem
    if is_waiting and name not in plan.approved:
        message = plan.held.get(name) or f"waits for wave {cluster.wave}"
    elif is_waiting:
        message = f"waits for template {cluster.good if is_restored else cluster.target}"
    entry = {
        "name": name,
        "wave": cluster.wave or None,
        "revision": seen.live,
        "target": cluster.target,
        "good": cluster.good,
        "changed": cluster.is_changed,
        "startedAt": _text(cluster.started_at),
        "stoppedAt": _text(cluster.stopped_at),
        "brokenSince": _text(cluster.broken_since),
        "disruptedSince": _text(cluster.disrupted_since),
        "message": message or None,
    }
    return {key: value for key, value in entry.items() if value is not None}


def _counts(pods: Counts | None) -> dict[str, int]:
    counts = pods or Counts(0, 0, 0, 0)
    return {"replicas": counts.wanted, "updatedReplicas": counts.updated, "readyReplicas": counts.ready}


def _conditions(
    held: list[conditions.Condition] | None, plan: Plan, observed: Mapping[str, Observed], now: datetime
) -> list[conditions.Condition]:
    for type_, (is_true, reason, message) in {
        wavenames.ROLLOUT_PROGRESSING: _progressing(plan),
        wavenames.ROLLOUT_HEALTHY: _healthy(plan, observed),
        names.ROLLOUT_PAUSED: _paused(plan),
        wavenames.ROLLOUT_ROLLED_BACK: _rolled_back(plan.record),
    }.items():
        status = "True" if is_true else "False"
        held = conditions.set_condition(held, type_=type_, status=status, reason=reason, message=message, now=now)
    return held or []


def _progressing(plan: Plan) -> tuple[bool, str, str]:
    phase = plan.record.phase
    is_progressing = phase in (Phase.PROGRESSING, Phase.ROLLING_BACK)
    return is_progressing, phase.value, (plan.waits if is_progressing else "") or f"the rollout is {phase.value}"


def _healthy(plan: Plan, observed: Mapping[str, Observed]) -> tuple[bool, str, str]:
    problems = [
        f"{name}: {observed[name].problem}" for name in plan.approved if name in observed and observed[name].problem
    ]
    if problems:
        return False, wavenames.REASON_GATE_NOT_HELD, "; ".join(problems[:_PROBLEMS_MAX])
    return True, wavenames.REASON_GATES_HELD, "the gates hold in all changed clusters"


def _paused(plan: Plan) -> tuple[bool, str, str]:
    if plan.record.paused_since is not None:
        return True, wavenames.REASON_PAUSED_BY_USER, "a user has paused the rollout or the workload"
    if plan.is_approval_needed:
        current = current_wave(plan.record)
        is_empty = current is not None and following_wave(plan.record, current.name) is not None
        if is_empty and plan.record.phase is Phase.PROGRESSING:
            return True, wavenames.REASON_WAVE_IS_EMPTY, plan.waits
        return True, wavenames.REASON_WAITING_FOR_APPROVAL, plan.waits
    return False, wavenames.REASON_NOT_PAUSED, "waves start when the gate of the wave before has held"


def _rolled_back(record: Record) -> tuple[bool, str, str]:
    if record.phase in _ROLLED_BACK:
        return True, wavenames.REASON_WAVE_FAILED, record.reason
    return False, wavenames.REASON_NOT_ROLLED_BACK, "no cluster was returned to its earlier template"


def _text(moment: datetime | None) -> str | None:
    return to_rfc3339_micro(moment) if moment is not None else None
