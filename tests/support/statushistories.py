"""Histories of what members report of one object, for merged statuses: any order of progress, with other clocks. Pure.

Members come and go, their objects are created again, their clocks differ, and some report nothing yet. Every status is one that a
real controller could have written.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object

CLUSTERS = ("east", "north", "west")
START = datetime(2026, 1, 1, tzinfo=UTC)


def histories(kind: str, seed: int, steps: int = 12) -> Iterator[tuple[datetime, dict[str, Object], frozenset[str]]]:
    """Yield time, member statuses by cluster, and the placement, step by step."""
    entropy = random.Random(f"{kind}/{seed}")
    skew_s = {cluster: entropy.choice((0, 0, -600, 600)) for cluster in CLUSTERS}
    placed = set(entropy.sample(CLUSTERS, entropy.randint(1, 3)))
    ages = dict.fromkeys(CLUSTERS, 0)
    for step in range(steps):
        now = START + timedelta(seconds=30 * step)
        if entropy.random() < 0.1:
            placed ^= {entropy.choice(CLUSTERS)}
        found = {}
        for cluster in sorted(placed):
            ages[cluster] += entropy.choice((0, 1, 1, 2))
            if entropy.random() < 0.05:
                ages[cluster] = 0  # created again
            if ages[cluster]:
                own = random.Random(f"{kind}/{seed}/{cluster}/{ages[cluster]}")
                at = now + timedelta(seconds=skew_s[cluster])
                if kind == "Job":
                    at = START + timedelta(seconds=skew_s[cluster] + 10 * CLUSTERS.index(cluster))
                found[cluster] = REPORTS[kind](own, ages[cluster], at, _fate(seed, cluster))
        yield now, found, frozenset(placed)


def _fate(seed: int, cluster: str) -> bool:
    return random.Random(f"{seed}/{cluster}").random() < 0.7


def _conditions(at: datetime, *types: str, reason: str = "Because", **more: Any) -> list[Object]:
    stamp = to_rfc3339(at)
    return [
        {"type": t, "status": "True", "reason": reason, "message": "m", "lastTransitionTime": stamp, **more}
        for t in types
    ]


def _job(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    start, ended = to_rfc3339(at), to_rfc3339(at + timedelta(seconds=120))
    if age < 4:
        active = entropy.randint(0, 3)
        failed = entropy.randint(0, 1)
        return {
            "startTime": start,
            "active": active,
            "ready": entropy.randint(0, active),
            "failed": failed,
            "terminating": 0,
        }
    if age < 5:
        types = ("SuccessCriteriaMet",) if succeeds else ("FailureTarget",)
        return {
            "startTime": start,
            "failed": 1,
            "succeeded": 2,
            "terminating": 1,
            "conditions": _conditions(at, *types),
        }
    if succeeds:
        both = _conditions(at, "SuccessCriteriaMet", "Complete", reason="CompletionsReached")
        return {"startTime": start, "completionTime": ended, "succeeded": 3, "failed": 1, "conditions": both}
    both = _conditions(at, "FailureTarget", "Failed", reason="BackoffLimitExceeded")
    return {"startTime": start, "succeeded": 1, "failed": 7, "conditions": both}


def _replicas(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    total = entropy.randint(0, 4)
    ready = entropy.randint(0, total)
    conditions = _conditions(at, "Progressing", *(("Available",) if succeeds else ("ReplicaFailure",)))
    return {
        "observedGeneration": age,
        "replicas": total,
        "readyReplicas": ready,
        "availableReplicas": entropy.randint(0, ready),
        "updatedReplicas": entropy.randint(0, total),
        "conditions": conditions,
    }


def _stateful_set(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    status = _replicas(entropy, age, at, succeeds)
    current = entropy.randint(0, status["replicas"])
    return {
        **status,
        "currentReplicas": current,
        "currentRevision": "db-1",
        "updateRevision": f"db-{age}",
        "collisionCount": 0,
    }


def _replica_set(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    status = _replicas(entropy, age, at, succeeds)
    del status["updatedReplicas"]
    return {**status, "fullyLabeledReplicas": status["readyReplicas"]}


def _daemon_set(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    wanted = entropy.randint(0, 4)
    counts = ("currentNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled", "numberUnavailable")
    return {
        "observedGeneration": age,
        "desiredNumberScheduled": wanted,
        "numberMisscheduled": 0,
        **{name: entropy.randint(0, wanted) for name in counts},
    }


def _cron_job(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    status: Object = {"lastScheduleTime": to_rfc3339(at)}
    if succeeds:
        status["lastSuccessfulTime"] = to_rfc3339(at)
    if entropy.random() < 0.5:
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": f"x-{age}", "namespace": "default", "uid": "u"}
        status["active"] = [reference]
    return status


def _autoscaler(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 40, "averageValue": "40m"}},
    }
    return {
        "observedGeneration": age,
        "currentReplicas": entropy.randint(0, 5),
        "desiredReplicas": entropy.randint(0, 5),
        "lastScaleTime": to_rfc3339(at),
        "currentMetrics": [metric],
        "conditions": _conditions(at, "AbleToScale", *(("ScalingActive",) if succeeds else ("ScalingLimited",))),
    }


def _budget(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    healthy = entropy.randint(0, 5)
    condition = _conditions(at, "DisruptionAllowed", reason="SufficientPods", observedGeneration=age)
    return {
        "observedGeneration": age,
        "currentHealthy": healthy,
        "desiredHealthy": 1,
        "expectedPods": 5,
        "disruptionsAllowed": healthy - 1 if succeeds and healthy else 0,
        "conditions": condition,
    }


def _claim(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    if age < 3:
        return {"phase": "Pending"}
    if age > 8 and not succeeds:
        return {"phase": "Lost"}
    bound: Object = {"phase": "Bound", "capacity": {"storage": entropy.choice(("1Gi", "2Gi"))}}
    bound["accessModes"] = ["ReadWriteOnce", *(["ReadOnlyMany"] if succeeds else [])]
    if entropy.random() < 0.3:
        bound["conditions"] = _conditions(at, "FileSystemResizePending", lastProbeTime=to_rfc3339(at))
    return bound


def _volume(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    phase = "Available" if age < 3 else "Bound" if succeeds or age < 8 else "Failed"
    return {"phase": phase, "lastPhaseTransitionTime": to_rfc3339(at), "message": "m"}


def _pod(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    stamp, is_over = to_rfc3339(at), age > 6
    terminated = {"exitCode": 0 if succeeds else 1, "reason": "Completed", "startedAt": stamp, "finishedAt": stamp}
    state: Object = (
        {"waiting": {"reason": "ContainerCreating"}}
        if age < 3
        else {"terminated": terminated}
        if is_over
        else {"running": {"startedAt": stamp}}
    )
    container = {
        "name": "main",
        "image": "web:1",
        "imageID": "sha256:1",
        "containerID": "containerd://1",
        "ready": 2 < age <= 6,
        "started": age > 2,
        "restartCount": age // 3,
        "state": state,
        "lastState": {"terminated": terminated} if age > 4 else {},
    }
    phase = "Pending" if age < 3 else "Running" if not is_over else "Succeeded" if succeeds else "Failed"
    types = ("PodScheduled", "Initialized", *(("Ready", "ContainersReady") if 2 < age <= 6 else ()))
    address = f"10.0.0.{entropy.randint(1, 250)}"
    return {
        "phase": phase,
        "startTime": stamp,
        "qosClass": "BestEffort",
        "hostIP": "10.1.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions(at, *types, lastProbeTime=stamp),
        "containerStatuses": [container],
    }


def _balancer(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    points: list[Object] = [{"ip": f"10.0.0.{entropy.randint(1, 3)}", "ipMode": "VIP"}]
    if succeeds:
        points.append({"hostname": "lb.example.com", "ports": [{"port": 80, "protocol": "TCP"}]})
    return {"loadBalancer": {"ingress": points} if age > 2 else {}}


def _ingress(entropy: random.Random, age: int, at: datetime, succeeds: bool) -> Object:
    found = _balancer(entropy, age, at, succeeds)["loadBalancer"].get("ingress", [])
    return {"loadBalancer": {"ingress": [{k: v for k, v in point.items() if k != "ipMode"} for point in found]}}


REPORTS: Mapping[str, Callable[[random.Random, int, datetime, bool], Object]] = {
    "CronJob": _cron_job,
    "DaemonSet": _daemon_set,
    "Deployment": _replicas,
    "HorizontalPodAutoscaler": _autoscaler,
    "Ingress": _ingress,
    "Job": _job,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
    "PodDisruptionBudget": _budget,
    "ReplicaSet": _replica_set,
    "Service": _balancer,
    "StatefulSet": _stateful_set,
}
