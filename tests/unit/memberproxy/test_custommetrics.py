"""Custom metrics of members: what a user gets when no member has values."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import orjson
import pytest
from tests.unit.memberproxy.members import ALICE, Member, a_pool

from federation.apimachinery.errors import Forbidden, NotFound, ServiceUnavailable
from federation.apimachinery.paths import parse
from federation.apiserver.http.asgi import Request
from federation.memberproxy.custommetrics import CustomMetricsConnector
from federation.memberproxy.placedclusters import EveryCluster

PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods"


def refused(code: int, reason: str) -> tuple[int, list[bytes]]:
    return code, [
        orjson.dumps({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no"})
    ]


ABSENT, FORBIDDEN, DOWN = refused(404, "NotFound"), refused(403, "Forbidden"), (200, [b"no JSON"])
EMPTY = 200, [orjson.dumps({"kind": "MetricValueList", "items": []})]


class Answer:
    """What the user gets."""

    def __init__(self) -> None:
        self.status, self.body, self.warnings = 0, b"", [""]

    async def send(self, message: dict[str, object]) -> None:
        self.status = int(str(message.get("status", self.status)))
        self.body += bytes(message.get("body", b""))  # type: ignore[call-overload]


async def ask(*answers: tuple[int, list[bytes]], name: str = "*", clusters: tuple[str, ...] = ("m", "m-a")) -> Answer:
    pool = a_pool(**{cluster: Member(answer) for cluster, answer in zip(clusters, answers, strict=False)})
    answer, path = Answer(), parse(f"{PODS}/{name}/hits")
    assert path is not None
    scope = {"type": "http", "method": "GET", "path": f"{PODS}/{name}/hits", "query_string": b"", "headers": []}
    request = Request(scope, None, answer.send)  # type: ignore[arg-type]
    request.user = ALICE
    placed = EveryCluster(pool)
    await CustomMetricsConnector(pool, placed, placed).serve(request, path, timeout_s=5.0)
    answer.warnings = request.warnings
    return answer


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ((ABSENT, ABSENT), NotFound),
        ((ABSENT, FORBIDDEN), Forbidden),
        ((FORBIDDEN, ABSENT), Forbidden),
        ((ABSENT, DOWN), ServiceUnavailable),
        ((DOWN, FORBIDDEN), ServiceUnavailable),
    ],
)
async def test_without_values_the_gravest_problem_is_the_answer(
    answers: tuple[tuple[int, list[bytes]], ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await ask(*answers)


@pytest.mark.parametrize(("other", "warnings"), [(ABSENT, 0), (FORBIDDEN, 1), (DOWN, 1)])
async def test_values_are_the_answer_and_other_problems_are_warnings(
    other: tuple[int, list[bytes]], warnings: int
) -> None:
    answer = await ask(EMPTY, other)
    assert (answer.status, orjson.loads(answer.body)["items"]) == (200, [])
    assert len(answer.warnings) == warnings


async def test_without_clusters_the_metric_is_not_found() -> None:
    with pytest.raises(NotFound, match="no cluster"):
        await ask()


def a_value(pod: str) -> tuple[int, list[bytes]]:
    described = {"kind": "Pod", "namespace": "default", "name": pod, "apiVersion": "/v1"}
    item = {"describedObject": described, "metric": {"name": "hits"}, "timestamp": "2026-01-01T00:00:00Z", "value": "5"}
    return 200, [orjson.dumps({"kind": "MetricValueList", "items": [item]})]


@pytest.mark.parametrize("other", [ABSENT, FORBIDDEN])
async def test_a_name_is_answered_when_no_other_cluster_can_have_it(other: tuple[int, list[bytes]]) -> None:
    answer = await ask(a_value("a-1"), other, name="m-a-1")
    assert [item["describedObject"]["name"] for item in orjson.loads(answer.body)["items"]] == ["m-a-1"]


async def test_a_name_that_may_have_a_second_meaning_has_no_answer() -> None:
    with pytest.raises(ServiceUnavailable):
        await ask(a_value("a-1"), DOWN, name="m-a-1")


class Only:
    """A visibility of one cluster, for namespaces or for everything."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster

    def clusters(self, namespace: str) -> list[str]:
        return [self.cluster]

    def is_visible(self, cluster: str, namespace: str) -> bool:
        return cluster == self.cluster

    def listening(self, on_change: Callable[[], None]) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.mark.parametrize(("what", "expected"), [("namespaces/default/pods", "m-a"), ("nodes", "m-b")])
async def test_metrics_of_a_namespace_come_from_the_clusters_of_its_objects(what: str, expected: str) -> None:
    members = {name: Member(EMPTY) for name in ("m-a", "m-b")}
    url = f"/apis/custom.metrics.k8s.io/v1beta2/{what}/*/hits"
    answer, path = Answer(), parse(url)
    assert path is not None
    scope = {"type": "http", "method": "GET", "path": url, "query_string": b"", "headers": []}
    request = Request(scope, None, answer.send)  # type: ignore[arg-type]
    request.user = ALICE
    await CustomMetricsConnector(a_pool(**members), Only("m-a"), Only("m-b")).serve(request, path, timeout_s=5.0)
    assert [name for name, member in members.items() if member.targets] == [expected]
