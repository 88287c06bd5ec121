"""Our autoscaler decides as Kubernetes' own for generated cases: replicas, conditions and current metrics.

`autoscaler/main.go` runs the controller of kube-controller-manager on each case. `AUTOSCALER_CASES=10000` generates more.
"""

import json
import os
import random
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.kubernetes.build import AUTOSCALER, build_program

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.quantity import to_milli
from federation.apiserver.semantics.defaults.otherdefaults import default_autoscaler
from federation.planning.autoscaling.decision import decide, decide_without_metrics
from federation.planning.autoscaling.measurements import Measurements, PodValues, Totals, Unmeasured, Values
from federation.planning.autoscaling.podmetrics import PodMetric, Sample
from federation.planning.autoscaling.replicacount import Replicas
from federation.planning.autoscaling.scalelimits import Bounds, History

CASES = int(os.environ.get("AUTOSCALER_CASES", "1000"))
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CONDITIONS = ("AbleToScale", "ScalingActive", "ScalingLimited")
CONTAINERS = ("main", "sidecar")
Case = dict[str, Any]


def test_our_autoscaler_decides_as_that_of_kubernetes() -> None:
    cases = [a_case(random.Random(seed)) for seed in range(CASES)]
    done = subprocess.run(
        [str(build_program(AUTOSCALER))],
        input="\n".join(map(json.dumps, cases)),
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    theirs = [to_outcome(json.loads(line)) for line in done.stdout.splitlines()]
    assert len(theirs) == len(cases)
    different = [
        (seed, ours, theirs_) for seed, theirs_ in enumerate(theirs) if (ours := decided(cases[seed])) != theirs_
    ]
    assert not different, f"{len(different)} of {CASES} differ; seed, ours and theirs: {different[:3]}"
    replicas = [
        (case["scale"]["spec"]["replicas"], outcome["replicas"]) for case, outcome in zip(cases, theirs, strict=True)
    ]
    for direction in (lambda old, new: new > old, lambda old, new: new < old, lambda old, new: new == old):
        assert sum(direction(*each) for each in replicas) > CASES / 20, (
            "the cases have changes in both directions, and none"
        )


def a_case(draw: random.Random) -> Case:
    """Return a case as `autoscaler/main.go` reads it."""
    wanted = draw.choice([0, 1, 2, 3, 3, 4, 5, 6, 8, 12])
    pods = [a_pod(draw, f"pod-{number}") for number in range(max(0, wanted + draw.choice([0, 0, 0, 0, -1, 1])))]
    low = draw.choice([1, 1, 1, 2, 4])
    high = low + draw.choice([1, 5, 10, 30])
    if draw.random() < 0.7:
        low, high = min(low, wanted or 1), max(high, wanted)
    spec: dict[str, Any] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": low,
        "maxReplicas": high,
        "metrics": [a_metric(draw, place) for place in range(draw.choice([1, 1, 1, 2, 3]))],
    }
    if draw.random() < 0.6:
        spec["behavior"] = {name: some_rules(draw) for name in ("scaleUp", "scaleDown") if draw.random() < 0.7}
    names = [pod["metadata"]["name"] for pod in pods]
    return {
        "now": to_rfc3339(NOW),
        "autoscaler": {"metadata": {"name": "web", "namespace": "default"}, "spec": spec},
        "scale": {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": wanted},
            "status": {"replicas": len(pods) or 1, "selector": "app=web"},
        },
        "pods": pods,
        "resources": {name: a_use(draw) for name in names if draw.random() < 0.85},
        "pod_metrics": {
            f"requests-{place}": {name: {"value": an_amount(draw)} for name in names if draw.random() < 0.9}
            for place in range(3)
            if draw.random() < 0.9
        },
        "object_metrics": {f"hits-{place}": an_amount(draw) for place in range(3) if draw.random() < 0.9},
        "external_metrics": {
            f"queue-{place}": [an_amount(draw) for _ in range(draw.choice([1, 1, 3]))]
            for place in range(3)
            if draw.random() < 0.9
        },
        "recommendations": some_changes(draw, 1, 20) if draw.random() < 0.6 else [],
        "scaled_up": some_changes(draw, 1, 6) if draw.random() < 0.4 else [],
        "scaled_down": some_changes(draw, 1, 6) if draw.random() < 0.4 else [],
    }


def a_pod(draw: random.Random, name: str) -> dict[str, Any]:
    started_s = draw.choice([10.5, 45.5, 200.5, 4000.5])
    ready: dict[str, Any] = {"type": "Ready", "status": draw.choice(["True", "True", "True", "True", "False"])}
    ready["lastTransitionTime"] = ago(started_s - draw.choice([0.0, 5.0, started_s / 2]))
    status: dict[str, Any] = {"phase": draw.choice(["Running"] * 8 + ["Pending", "Failed"]), "conditions": [ready]}
    if draw.random() < 0.95:
        status["startTime"] = ago(started_s)
    if draw.random() < 0.05:
        status["conditions"] = []
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    if draw.random() < 0.05:
        metadata["deletionTimestamp"] = ago(1.5)
    spec: dict[str, Any] = {"containers": [a_container(draw, "main")]}
    if draw.random() < 0.5:
        kind = draw.choice(["containers", "initContainers"])
        sidecar = a_container(draw, "sidecar")
        if kind == "initContainers":
            spec[kind] = [sidecar | ({"restartPolicy": "Always"} if draw.random() < 0.7 else {})]
        else:
            spec[kind].append(sidecar)
    if draw.random() < 0.05:
        spec["resources"] = {"requests": some_requests(draw)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def a_container(draw: random.Random, name: str) -> dict[str, Any]:
    return {"name": name, "image": "web", "resources": {"requests": some_requests(draw)}}


def some_requests(draw: random.Random) -> dict[str, str]:
    requests = {"cpu": draw.choice(["100m", "250m", "1"]), "memory": draw.choice(["64Mi", "1Gi"])}
    return {name: amount for name, amount in requests.items() if draw.random() < 0.99}


def a_use(draw: random.Random) -> dict[str, Any]:
    containers = {
        name: {"cpu": draw.randint(0, 500), "memory": draw.randint(0, 2**30) * 1000}
        for name in CONTAINERS[: draw.choice([1, 1, 2])]
    }
    return {"containers": containers, "age_s": draw.choice([0.5, 20.5]), "window_s": 15}


def a_metric(draw: random.Random, place: int) -> dict[str, Any]:
    type_ = draw.choice(["Resource", "Resource", "ContainerResource", "Pods", "Object", "External"])
    value = str(draw.choice([10, 50, 200, 1500])) + draw.choice(["", "m"])
    average, whole = {"type": "AverageValue", "averageValue": value}, {"type": "Value", "value": value}
    if type_ in ("Resource", "ContainerResource"):
        name = draw.choice(["cpu", "cpu", "memory"])
        amount = draw.choice(["50m", "300m"]) if name == "cpu" else "300Mi"
        target = draw.choice(
            [
                {"type": "Utilization", "averageUtilization": draw.choice([1, 30, 50, 80, 120])},
                {"type": "AverageValue", "averageValue": amount},
            ]
        )
        source = {"name": name, "target": target}
        if type_ == "Resource":
            return {"type": type_, "resource": source}
        return {"type": type_, "containerResource": {**source, "container": draw.choice(CONTAINERS)}}
    if type_ == "Pods":
        return {"type": type_, "pods": {"metric": {"name": f"requests-{place}"}, "target": average}}
    target = draw.choice([average, whole])
    if type_ == "External":
        return {"type": type_, "external": {"metric": {"name": f"queue-{place}"}, "target": target}}
    described = {"apiVersion": "v1", "kind": "Service", "name": "web"}
    return {
        "type": type_,
        "object": {"describedObject": described, "metric": {"name": f"hits-{place}"}, "target": target},
    }


def some_rules(draw: random.Random) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    if draw.random() < 0.6:
        rules["stabilizationWindowSeconds"] = draw.choice([0, 0, 60, 300])
    if draw.random() < 0.4:
        rules["selectPolicy"] = draw.choice(["Max", "Min", "Disabled"])
    if draw.random() < 0.3:
        rules["tolerance"] = draw.choice(["0", "50m", "300m"])
    if draw.random() < 0.6:
        rules["policies"] = [
            {
                "type": draw.choice(["Pods", "Percent"]),
                "value": draw.choice([1, 3, 10, 50, 100]),
                "periodSeconds": draw.choice([15, 60, 600]),
            }
            for _ in range(draw.choice([1, 2]))
        ]
    return rules


def some_changes(draw: random.Random, low: int, high: int) -> list[dict[str, Any]]:
    ages = sorted((draw.randint(1, 700) + 0.5 for _ in range(draw.choice([1, 2, 4]))), reverse=True)
    return [{"age_s": age_s, "count": draw.randint(low, high)} for age_s in ages]


def an_amount(draw: random.Random) -> int:
    return draw.choice([0, draw.randint(1, 1000), draw.randint(1000, 3_000_000)])


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def decided(case: Case) -> dict[str, Any]:
    """Return what our autoscaler does."""
    autoscaler = json.loads(json.dumps(case["autoscaler"]))
    default_autoscaler(autoscaler)
    spec, scale = autoscaler["spec"], case["scale"]
    current = scale["spec"]["replicas"]
    recommended = [(-each["age_s"], each["count"]) for each in case["recommendations"]] or [(0.0, current)]
    changes = [(-each["age_s"], each["count"]) for each in case["scaled_up"]]
    changes += [(-each["age_s"], -each["count"]) for each in case["scaled_down"]]
    history = History(recommended, changes)
    decision = decide_without_metrics(current, Bounds.of(spec))
    if decision is None:
        replicas = Replicas(current, scale["status"]["replicas"])
        decision = decide(spec, replicas, measured(case), history, now=NOW, now_s=0.0)
    conditions = {type_: (status, reason) for type_, status, reason, _ in decision.conditions}
    conditions.setdefault("AbleToScale", ("True", "SucceededGetScale"))
    if decision.replicas != current:
        conditions["AbleToScale"] = ("True", "SucceededRescale")
    metrics = [to_current(metric) for metric in decision.metrics or ()]
    return {"replicas": decision.replicas, "conditions": conditions, "metrics": metrics}


def measured(case: Case) -> Measurements:
    def to_metric(name: str) -> PodMetric | None:
        found = case["resources"].get(name)
        if found is None:
            return None
        return PodMetric(found["containers"], NOW - timedelta(seconds=found["age_s"]), found["window_s"])

    values: dict[int, Values] = {}
    for place, metric in enumerate(case["autoscaler"]["spec"]["metrics"]):
        name = next(iter(metric[key] for key in metric if key != "type")).get("metric", {}).get("name", "")
        missing = Unmeasured("there is none")
        if metric["type"] == "Pods":
            found = case["pod_metrics"].get(name, {})
            amounts = [(found.get(pod["metadata"]["name"]) or {}).get("value") for pod in case["pods"]]
            values[place] = PodValues(amounts) if found else missing
        elif metric["type"] == "Object":
            found = case["object_metrics"].get(name)
            values[place] = missing if found is None else Totals([found])
        elif metric["type"] == "External":
            found = case["external_metrics"].get(name)
            values[place] = Totals(found) if found else missing
    return Measurements([Sample(pod, to_metric(pod["metadata"]["name"])) for pod in case["pods"]], values)


def to_outcome(found: dict[str, Any]) -> dict[str, Any]:
    status = found["status"]
    return {
        "replicas": found["replicas"],
        "conditions": {each["type"]: (each["status"], each["reason"]) for each in status.get("conditions") or ()},
        "metrics": [to_current(metric) for metric in status.get("currentMetrics") or () if metric["type"]],
    }


def to_current(metric: dict[str, Any]) -> tuple[Any, ...]:
    """Return type and current values of a metric, with amounts in milli-units."""
    (source,) = (value for key, value in metric.items() if key != "type")
    current = source["current"]
    amounts = {
        name: to_milli(str(current[name])) for name in ("value", "averageValue") if current.get(name) is not None
    }
    return metric["type"], amounts, current.get("averageUtilization")
