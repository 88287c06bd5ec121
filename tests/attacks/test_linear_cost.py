"""The cost of a request grows with its size, not with its square: patches, selectors, Tables, validation, rules.

Each input is sent with n and with 4 n parts. CPU time may grow eightfold at most; squares grow sixteenfold. Times below
`NOISE_S` say nothing and pass: the smallest square here, 4,000 parts compared each with each, takes longer. The garbage
collector rests meanwhile, because it scans in steps, not in proportion.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
import pytest_asyncio
from tests.support.cputime import least_cpu_s
from tests.support.hostile.world import ADMIN, HostileRequest, Target, a_target
from tests.support.rest import APPLY, JSON_PATCH, MERGE, STRATEGIC, TABLE

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOISE_S = 0.15
GROWTH_MAX = 8.0
ATTEMPTS = 4
"""A busy machine doubles a CPU time now and then, but not always that of the larger request."""
CONFIG_MAPS = "/api/v1/namespaces/kept/configmaps"
CONFIG_MAP = f"{CONFIG_MAPS}/kept"
DEPLOYMENT = "/apis/apps/v1/namespaces/kept/deployments/kept"
WIDGET = "/apis/example.com/v1/namespaces/kept/widgets/kept"
POD = "/api/v1/namespaces/kept/pods"
JSON = "application/json"


def a_request(method: str, target: str, body: Any, type_: str = JSON, accept: str = JSON) -> HostileRequest:
    content = b"" if body is None else orjson.dumps(body)
    return HostileRequest(method, target, (("content-type", type_), ("accept", accept)), content, ADMIN)


def applied(kind: str, version: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "kept"}, **fields}


def containers(count: int) -> list[dict[str, Any]]:
    return [
        {"name": f"c{n}", "image": "a", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "b"}]}
        for n in range(count)
    ]


def template(count: int) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "kept"}}, "spec": {"containers": containers(count)}}


def variables(count: int) -> list[dict[str, str]]:
    return [{"name": f"V{n}", "value": "x"} for n in range(count)]


def in_main(count: int) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": variables(count)}]}}}}


DRY = "?dryRun=All&fieldManager=x&force=true"
FORCED = "?fieldManager=x&force=true"
PARTS: dict[str, tuple[Callable[[int], HostileRequest], int]] = {
    "a merge patch": (
        lambda n: a_request("PATCH", CONFIG_MAP + DRY, {"data": {f"k{i}": "" for i in range(n)}}, MERGE),
        10_000,
    ),
    "nulls in a map": (
        lambda n: a_request(
            "POST", f"{CONFIG_MAPS}{DRY}", applied("ConfigMap", "v1", data={f"k{i}": None for i in range(n)})
        ),
        10_000,
    ),
    "an apply": (
        lambda n: a_request(
            "PATCH", CONFIG_MAP + DRY, applied("ConfigMap", "v1", data={f"k{i}": "" for i in range(n)}), APPLY
        ),
        10_000,
    ),
    "an apply of list items by key": (
        lambda n: a_request("PATCH", DEPLOYMENT + DRY, applied("Deployment", "apps/v1", **in_main(n)), APPLY),
        3_000,
    ),
    "a strategic patch of list items": (lambda n: a_request("PATCH", DEPLOYMENT + DRY, in_main(n), STRATEGIC), 3_000),
    "a strategic patch of containers": (
        lambda n: a_request("PATCH", DEPLOYMENT + DRY, {"spec": {"template": template(n)}}, STRATEGIC),
        1_000,
    ),
    "the order of a strategic patch": (
        lambda n: a_request(
            "PATCH",
            DEPLOYMENT + DRY,
            {
                "spec": {
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "name": "main",
                                    "env": variables(n),
                                    "$setElementOrder/env": [{"name": f"V{i}"} for i in reversed(range(n))],
                                }
                            ]
                        }
                    }
                }
            },
            STRATEGIC,
        ),
        3_000,
    ),
    "a JSON patch of additions": (
        lambda n: a_request(
            "PATCH",
            CONFIG_MAP + DRY,
            [{"op": "add", "path": f"/data/k{i}", "value": "x"} for i in range(n)],
            JSON_PATCH,
        ),
        2_000,
    ),
    "finalizers": (
        lambda n: a_request(
            "PATCH", CONFIG_MAP + DRY, {"metadata": {"finalizers": [f"a.b/{i}" for i in range(n)]}}, STRATEGIC
        ),
        5_000,
    ),
    "owner references": (
        lambda n: a_request(
            "PATCH",
            CONFIG_MAP + DRY,
            {
                "metadata": {
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Pod", "name": f"p{i}", "uid": str(i)} for i in range(n)
                    ]
                }
            },
            STRATEGIC,
        ),
        3_000,
    ),
    "labels": (
        lambda n: a_request(
            "PATCH", CONFIG_MAP + DRY, {"metadata": {"labels": {f"l{i}": "x" for i in range(n)}}}, MERGE
        ),
        5_000,
    ),
    "unknown fields": (
        lambda n: a_request(
            "PATCH", f"{DEPLOYMENT}{DRY}&fieldValidation=Warn", {"spec": {f"u{i}": 1 for i in range(n)}}, MERGE
        ),
        10_000,
    ),
    "containers of a pod": (
        lambda n: a_request(
            "POST",
            f"{POD}?dryRun=All",
            applied("Pod", "v1", metadata={"name": "p"}, spec={"containers": containers(n)}),
        ),
        1_000,
    ),
    "tolerations of a pod": (
        lambda n: a_request(
            "POST",
            f"{POD}?dryRun=All",
            applied(
                "Pod",
                "v1",
                metadata={"name": "p"},
                spec={
                    "containers": containers(1),
                    "tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(n)],
                },
            ),
        ),
        3_000,
    ),
    "a label selector": (
        lambda n: a_request(
            "GET", f"/api/v1/namespaces/kept/configmaps?labelSelector={','.join(f'k{i}!=v' for i in range(n))}", None
        ),
        2_000,
    ),
    "values of a label selector": (
        lambda n: a_request(
            "GET",
            f"/api/v1/namespaces/kept/configmaps?labelSelector=a+in+({','.join(f'v{i}' for i in range(n))})",
            None,
        ),
        3_000,
    ),
    "a field selector": (
        lambda n: a_request(
            "GET",
            f"/api/v1/namespaces/kept/configmaps?fieldSelector={','.join('metadata.name!=v' for i in range(n))}",
            None,
        ),
        1_000,
    ),
    "a set of a custom resource": (
        lambda n: a_request("PATCH", WIDGET + DRY, {"spec": {"tags": [f"t{i}" for i in range(n)]}}, MERGE),
        5_000,
    ),
    "a list by key of a custom resource": (
        lambda n: a_request(
            "PATCH", WIDGET + DRY, {"spec": {"parts": [{"name": f"p{i}", "count": 1} for i in range(n)]}}, MERGE
        ),
        5_000,
    ),
    "a Table of a wide object": (
        lambda n: a_request("PATCH", f"{DEPLOYMENT}?dryRun=All", {"spec": {"template": template(n)}}, STRATEGIC, TABLE),
        1_000,
    ),
    "rules of a role": (
        lambda n: a_request(
            "POST",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All",
            applied(
                "ClusterRole",
                "rbac.authorization.k8s.io/v1",
                metadata={"name": "r"},
                rules=[{"apiGroups": [""], "resources": [f"r{i}"], "verbs": ["get"]} for i in range(n)],
            ),
        ),
        3_000,
    ),
    "versions and columns of a definition": (
        lambda n: a_request(
            "PATCH",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com?dryRun=All",
            [
                {
                    "op": "add",
                    "path": "/spec/versions/0/additionalPrinterColumns",
                    "value": [{"name": f"c{i}", "type": "string", "jsonPath": f".spec.c{i}"} for i in range(n)],
                }
            ],
            JSON_PATCH,
        ),
        2_000,
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def target(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Target]:
    """One server for all: no request changes anything."""
    async with a_target(tmp_path_factory.mktemp("target")) as found:
        yield found


async def cpu_s(target: Target, request: HostileRequest) -> float:
    """Return the least CPU time of a request."""
    answer, taken_s = await least_cpu_s(lambda: target.send(request), NOISE_S, is_compared=True)
    assert answer.status < 500, answer.body[:300]
    return taken_s


@pytest.mark.slow("each request is measured at two sizes, several times")
@pytest.mark.parametrize("name", PARTS)
async def test_the_cost_of_a_request_grows_with_its_size(target: Target, name: str) -> None:
    make, count = PARTS[name]
    await cpu_s(target, make(10))  # schemas are compiled by the first request
    measured = []
    for _ in range(ATTEMPTS):
        large_s = await cpu_s(target, make(4 * count))
        if large_s < NOISE_S:
            return
        small_s = await cpu_s(target, make(count))
        if large_s < GROWTH_MAX * small_s:
            return
        measured.append(f"{small_s:.3f} s for {count}, {large_s:.3f} s for {4 * count}")
    pytest.fail("; ".join(measured), pytrace=False)
