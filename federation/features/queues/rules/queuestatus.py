"""The status of queues: counts, usage, and the first waiting jobs with their lacks and estimated starts. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.quantity import format_quantity, parse
from federation.features.queues.rules.entries import Entry
from federation.features.queues.rules.estimate import Running, estimate_starts
from federation.features.queues.rules.facts import Amounts, Decisions, Job, Lack, Pair, Resources, Waits
from federation.features.queues.rules.faults import JobFailed, blame
from federation.features.queues.rules.queuestate import QueueState
from federation.features.queues.rules.shares import Shares
from federation.planning.accounts.usage import Usage
from federation.scheduling.deadlines import Alternative
from federation.scheduling.framework.gangfit import amount_number, amount_text
from federation.scheduling.framework.types import CPU, MEMORY

LISTED_MAX = 100
"""Waiting jobs in the status of a JobQueue."""
_MINUTE_S = 60
_ENDLESS = frozenset((Lack.PROBLEM, Lack.HELD, Lack.NO_QUOTA, Lack.TOO_LARGE, Lack.CHECK))
"""Causes that time alone does not remove: such jobs have no estimated start."""


@dataclass(frozen=True, slots=True)
class QueueStatuses:
    """The statuses by name; those of JobQueues by namespace and name."""

    cluster_queues: Mapping[str, Mapping[str, Any]]
    job_queues: Mapping[tuple[str, str], Mapping[str, Any]]
    oldest_s: Mapping[str, float]
    """The age of the oldest job that waits for something which time brings, by ClusterJobQueue."""


def compute_statuses(state: QueueState, decisions: Decisions, now: float) -> QueueStatuses:
    """Return the statuses after a round; the cost is linear in the number of objects."""
    queues = {name: each.queue for name, each in state.queues.items()}
    usage, by_share = Usage[Pair](queues), Shares(queues)
    running: dict[str, list[Job]] = defaultdict(list)
    counts: dict[tuple[str, str], list[int]] = {key: [0, 0] for key in state.job_queues}
    pending = dict.fromkeys(queues, 0)
    held: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    waits = dict(decisions.waits)
    """With jobs that are admitted and wait for an answer, so that the list has every job that is counted."""
    for key, entry in state.entries.items():
        job, count = state.job_of(key), counts.get((entry.namespace, entry.queue))
        if entry.has_finished or (entry.is_deleted and job.is_waiting):
            continue
        if count is not None:
            count[0 if job.is_waiting else 1] += 1
        if job.is_waiting:
            if key in decisions.admitted:
                waits[key] = Waits(Lack.CHECK if state.must_ask(key, now) else Lack.START)
            elif key not in waits:
                waits[key] = Waits(Lack.TURN, needed=count[0] - 1 if count is not None else 0)
            if job.queue:
                pending[job.queue] += 1
        elif job.queue:
            holds = job.holds or {}
            usage.add(job.queue, holds)
            for (_, resource), amount in holds.items():
                held[job.leaf][resource] += amount
            running[job.queue].append(job)
    waiting: dict[str, list[tuple[str, Waits]]] = defaultdict(list)
    for key, each in waits.items():
        waiting[state.job_of(key).queue].append((key, each))
    listed: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for name, unordered in waiting.items():
        in_order = _in_order(state, by_share, unordered, held)
        starts = _starts(state, usage, name, running[name], in_order, now)
        for position, (key, each) in enumerate(in_order, 1):
            entry = state.entries[key]
            of = listed[entry.namespace, entry.queue]
            if len(of) < LISTED_MAX:
                of.append(_guarded_line(state, entry, position, each, starts.get(key), decisions))
    cluster_queues = {
        name: _cluster_queue(state, usage, name, pending[name], len(running[name])) for name in sorted(queues)
    }
    for text, problem in state.problems.items():
        kind, _, name = text.partition(" ")
        if kind == "queue":
            cluster_queues[name] = {"pending": 0, "admitted": 0, **cluster_queues.get(name, {}), "message": problem}
    job_queues = {}
    for (namespace, name), (count_pending, admitted) in counts.items():
        status: dict[str, Any] = {"pending": count_pending, "admitted": admitted}
        if (namespace, name) in listed:
            status["waiting"] = listed[namespace, name]
        if problem := state.problem_of_queue(namespace, name):
            status["message"] = problem
        job_queues[namespace, name] = status
    return QueueStatuses(cluster_queues, job_queues, _oldest(state, cluster_queues, decisions, now))


def _in_order(
    state: QueueState, by_share: Shares, waiting: list[tuple[str, Waits]], held: Mapping[str, Mapping[str, int]]
) -> list[tuple[str, Waits]]:
    """Return the jobs of a queue as the next round looks at them, with `held` by JobQueue and resource."""
    shares: dict[str, float] = {}

    def place(found: tuple[str, Waits]) -> tuple[bool, bool, int, float, float, str]:
        key, waits = found
        job = state.job_of(key)
        share = shares.get(job.leaf)
        if share is None:
            queue = state.queues.get(job.queue)
            share = by_share.of(queue.queue, held.get(job.leaf, {})) if queue is not None else 0.0
            shares[job.leaf] = share
        is_outside = waits.lack is Lack.TURN
        return (is_outside, not job.is_front, -job.priority, share, job.created_s, key)

    return sorted(waiting, key=place)


def _oldest(state: QueueState, queues: Iterable[str], decisions: Decisions, now: float) -> Mapping[str, float]:
    found = dict.fromkeys(queues, 0.0)
    for key, waits in decisions.waits.items():
        job = state.job_of(key)
        if waits.lack not in _ENDLESS and job.queue in found:
            found[job.queue] = max(found[job.queue], now - job.created_s)
    return found


def _cluster_queue(state: QueueState, usage: Usage[Pair], name: str, pending: int, admitted: int) -> Mapping[str, Any]:
    queue = state.queues[name]
    listed = []
    for pair, limit in queue.queue.limits.items():
        flavor, resource = pair
        used = usage.used(name).get(pair, 0)
        line = {
            "flavor": flavor,
            "resource": resource,
            "nominalQuota": _quantity(resource, limit.own),
            "used": _quantity(resource, used),
        }
        if used > limit.own:
            line["borrowed"] = _quantity(resource, used - limit.own)
        listed.append(line)
    status: dict[str, Any] = {"pending": pending, "admitted": admitted, "usage": listed}
    if missing := sorted(set(queue.flavors) - state.flavor_names()):
        status["message"] = f"CapacityFlavor {', '.join(missing)} does not exist"
    elif queue.queue.is_held:
        status["message"] = f"it is held: spec.stopPolicy is {'HoldAndDrain' if queue.queue.is_drained else 'Hold'}"
    return status


def _starts(
    state: QueueState,
    usage: Usage[Pair],
    name: str,
    running: list[Job],
    waiting: Iterable[tuple[str, Waits]],
    now: float,
) -> Mapping[str, float | None]:
    """Return the estimated starts of a queue's jobs: when the quota has room, or the clusters, whichever is later."""
    mean_s, rooms = state.means_s.get(name), state.rooms(now)
    inside = [job for job in running if job.cluster in rooms]
    lost = {job.key for job in running if job.cluster and job.cluster not in rooms}
    jobs = [job for key, waits in waiting if waits.lack not in _ENDLESS and (job := state.job_of(key)).options]
    by_quota = estimate_starts(
        [
            # A job in a cluster that does not answer keeps its quota, and nothing says for how long.
            Running(job.started_s, _length_s(job), _part_of_quota(usage, job, job.holds or {}), job.key not in lost)
            for job in running
        ],
        [_part_of_quota(usage, job, job.options[0].amounts) for job in jobs],
        mean_s,
        now,
    )
    total: dict[str, int] = defaultdict(int)
    free: dict[str, int] = defaultdict(int)
    for room in rooms.values():
        for resource, amount in room.total.items():
            total[resource] += amount
            free[resource] += room.free.get(resource, 0)
    used = {name: sum(job.needs.get(name, 0) for job in inside) for name in total}
    # What others use does not end, as far as anybody knows.
    size = {name: free[name] + used[name] for name in total}
    by_room = estimate_starts(
        [Running(job.started_s, _length_s(job), _part(job.needs, size)) for job in inside],
        [_part(job.needs, size) for job in jobs],
        mean_s,
        now,
    )
    return {
        job.key: None if first is None or second is None else max(first, second)
        for job, first, second in zip(jobs, by_quota, by_room, strict=True)
    }


def _length_s(job: Job) -> float | None:
    return job.limit_s if job.bids is None else job.bids.deadline.run_s


def _part_of_quota(usage: Usage[Pair], job: Job, amounts: Amounts) -> float:
    return max((amount / max(1, usage.most(job.queue, pair)) for pair, amount in amounts.items()), default=0.0)


def _part(needs: Resources, size: Resources) -> float:
    return max((amount / max(1, size.get(name, 0)) for name, amount in needs.items()), default=0.0)


def _guarded_line(
    state: QueueState, entry: Entry, position: int, waits: Waits, start: float | None, decisions: Decisions
) -> Mapping[str, Any]:
    """Return the line of a job; after an error it has the reason only, and the job is set aside."""
    key = entry.key

    def line() -> Mapping[str, Any]:
        alternatives = decisions.alternatives.get(key, ())
        return {**_waiting_job(state, entry, position, waits, start), **_of_deadline(waits, alternatives)}

    try:
        return blame(line, lambda: key)
    except JobFailed as failed:
        state.record_fault(key, failed.error)
        return _waiting_job(state, entry, position, Waits(Lack.PROBLEM), None)


def _waiting_job(
    state: QueueState, entry: Entry, position: int, waits: Waits, start: float | None
) -> Mapping[str, Any]:
    line: dict[str, Any] = {
        "kind": entry.kind,
        "name": entry.name,
        "position": position,
        "waitsFor": describe(state, entry, waits),
    }
    if start is not None:
        whole = -(-start // _MINUTE_S) * _MINUTE_S
        line["estimatedStartTime"] = to_rfc3339(datetime.fromtimestamp(whole, UTC))
    return line


def _of_deadline(waits: Waits, alternatives: Sequence[Alternative]) -> Mapping[str, Any]:
    if not alternatives:
        return {}
    found: dict[str, Any] = {"alternatives": [msgspec.to_builtins(each) for each in alternatives]}
    if waits.lack is Lack.CHEAPER and (start := found["alternatives"][0].get("startsAt")):
        found["estimatedStartTime"] = start
    return found


def describe(state: QueueState, entry: Entry, waits: Waits) -> str:
    """Return what a job waits for, for people. It names nothing of other namespaces."""
    needs = amount_text(waits.resource, waits.needed) if waits.resource else ""
    found = amount_number(waits.resource, waits.found) if waits.resource else ""
    queue = state.queue_of(entry)
    name = queue.queue.name if queue is not None else ""
    of = f"ClusterJobQueue {name}"
    match waits.lack:
        case Lack.PROBLEM:
            return state.problem_of(entry)
        case Lack.HELD:
            return f"{of} is held"
        case Lack.NO_QUOTA if not waits.resource:
            return f"{of} has no flavor whose nodeLabels are in the nodeSelector of all of its pods"
        case Lack.NO_QUOTA:
            return f"{of} has no quota of {waits.resource} in flavor {waits.flavor}"
        case Lack.TOO_LARGE if waits.flavor:
            return f"needs {needs}, {of} can have at most {found} of flavor {waits.flavor}"
        case Lack.TOO_LARGE:
            if needs:
                return f"needs {needs}, the largest cluster has {found}"
            because = entry.admission.because if entry.admission is not None else ""
            return because or "no cluster that is ready belongs to a flavor that it can use"
        case Lack.QUOTA:
            return f"needs {needs}, {of} has {found} of flavor {waits.flavor} free"
        case Lack.BEHIND:
            return f"needs {needs}, which {of} keeps for a job before it"
        case Lack.ROOM:
            return f"needs {needs}, the freest cluster has {found} free" if needs else "no cluster has room for it"
        case Lack.RESERVED:
            return "the clusters with room keep it for a job before it"
        case Lack.CHEAPER:
            return f"waits for cluster {waits.flavor}, the cheapest in which it ends before its deadline"
        case Lack.RETRY:
            because = entry.admission.because if entry.admission is not None else ""
            return because or "it is tried again shortly"
        case Lack.CHECK:
            return state.held_because(entry.key) or f"the admission checks of {of} have not answered yet"
        case Lack.START:
            return "it has quota and room, and is about to start"
        case Lack.TURN:
            return f"{waits.needed} jobs of its queue are before it"


def _quantity(resource: str, amount: int) -> str:
    if resource == CPU:
        return format_quantity(parse(f"{amount}m"))
    if resource == MEMORY and amount % 2**20 == 0:
        return format_quantity(parse(f"{amount // 2**20}Mi"))
    return str(amount)
