"""Attack: a tenant reads what others measure, or reaches other addresses, with objectives of rollouts."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.prometheus import CountedRequests

from federation.admission.rolloutgates import objective_causes
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.webhookclient import WebhookClient, WebhookResponse
from federation.features.waves.metricsgate import MetricsGate
from federation.features.waves.rules.objectivegate import ObjectivesDue
from federation.features.waves.rules.objectives import Verdict
from federation.features.waves.rules.promql import Workload, build_queries
from federation.planning.waves.metricsources import MetricSource, Sources
from federation.planning.waves.waverules import Objective, compile_rules
from federation.runtime.controller import Key

SOURCES: Sources = {
    "main": MetricSource("https://prometheus"),
    "private": MetricSource("https://other", namespaces=("bank",)),
}
WEB = (Workload("Deployment", "shop", "web"),)
ESCAPES = (
    '"} or {namespace="bank',
    'x"}[5m])) or sum by (cluster) (increase(m{namespace="bank"',
    "\\",
    '\\"} or m{x="',
    "a\nb",
    "`",
    "$selector",
    "'",
)


def objectives_of(**fields: Any) -> tuple[Objective, ...]:
    entry = {"name": "e", "source": "main", **fields}
    return compile_rules("p", {"waves": [{"name": "a", "gate": {"objectives": [entry]}}]}).waves[0].gate.objectives


def outside_of_strings(query: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', query)


@pytest.mark.parametrize("text", ESCAPES)
def test_no_text_leaves_its_quotes(text: str) -> None:
    (plain,) = objectives_of(errors={"metric": "m", "labels": {"a": "x"}, "bad": {"b": "y"}})
    (hostile,) = objectives_of(errors={"metric": "m", "labels": {"a": text}, "bad": {"b": text}})
    wanted, built = (build_queries(each, SOURCES["main"], WEB, 60) for each in (plain, hostile))
    assert outside_of_strings(built.total) == outside_of_strings(wanted.total)
    assert outside_of_strings(built.part) == outside_of_strings(wanted.part)
    assert built.part.count('namespace="shop",') == 1


@pytest.mark.parametrize("name", ["m} or bank", 'm{namespace="bank"}', "m[5m]", "", "1m", "m or bank"])
def test_a_metric_that_is_no_name_is_not_queried(name: str) -> None:
    """Rules come from an annotation, which every user with the right to write federated objects can set."""
    (hostile,) = objectives_of(errors={"metric": name, "bad": {"b": "y"}})
    with pytest.raises(ValueError, match="no name of a metric"):
        build_queries(hostile, SOURCES["main"], WEB, 60)


@pytest.mark.parametrize("label", ['a="",namespace', "a b", "", "__name__", "a}"])
def test_a_label_that_is_no_name_is_not_queried(label: str) -> None:
    for fields in ({"labels": {label: "x"}, "bad": {"b": "y"}}, {"bad": {label: "x"}}):
        (hostile,) = objectives_of(errors={"metric": "m", **fields})
        with pytest.raises(ValueError, match="no name of a label"):
            build_queries(hostile, SOURCES["main"], WEB, 60)


def test_a_matcher_of_another_namespace_only_narrows() -> None:
    (hostile,) = objectives_of(errors={"metric": "m", "labels": {"namespace": "bank"}, "bad": {"b": "y"}})
    assert '{namespace="shop",' in build_queries(hostile, SOURCES["main"], WEB, 60).total


@pytest.mark.parametrize("source", ["private", "https://evil.example.com", "", "../main"])
def test_a_source_that_is_not_listed_for_the_namespace_is_refused_with_its_field(source: str) -> None:
    rollout = {"waves": [{"name": "a", "gate": {"objectives": [{"name": "e", "source": source}]}}]}
    ((found),) = objective_causes(rollout, SOURCES, "shop")
    assert found["field"] == "spec.rollout.waves[0].gate.objectives[0].source"
    assert found["message"].endswith("choose one of main")
    assert "other" not in found["message"]


class Refusing:
    """A transport that must not be used."""

    async def get(self, *_args: Any, **_more: Any) -> WebhookResponse:
        raise AssertionError

    post = get


def due(clock: ManualClock, objective: Objective) -> ObjectivesDue:
    since = clock.now()
    clock.skip(300)
    return ObjectivesDue("a", (objective,), since, since, 60, ("c",), ())


async def test_a_source_of_others_is_not_queried_whatever_the_rules_say() -> None:
    clock = ManualClock()
    (objective,) = objectives_of(source="private", errors={"metric": "m", "bad": {"b": "y"}})
    gate = MetricsGate(Refusing(), SOURCES, clock)
    judged = await gate.judge(Key("shop", "web"), WEB, due(clock, objective))
    assert judged.judgement.verdict is Verdict.NO_DATA
    assert "lists no source of metrics private" in judged.judgement.text


async def test_credentials_are_sent_to_the_listed_address_only(tmp_path: Path) -> None:
    """Nor does a failure tell users the address, or what it answered."""
    clock, token = ManualClock(), tmp_path / "token"
    token.write_text("secret\n")
    sources = {"main": MetricSource("https://prometheus/base/", token_file=str(token))}
    sent: list[tuple[Connection, str]] = []

    class Recording(CountedRequests):
        async def post(self, connection: Connection, body: bytes, headers: Any, *, timeout_s: float) -> WebhookResponse:
            sent.append((connection, headers["Authorization"]))
            return await super().post(connection, body, headers, timeout_s=timeout_s)

    counted = Recording(clock, {})
    counted.status = 302
    (objective,) = objectives_of(errors={"metric": "m", "bad": {"code": "y"}})
    judged = await MetricsGate(counted, sources, clock).judge(Key("shop", "web"), WEB, due(clock, objective))
    assert {(each.server, text) for each, text in sent} == {("https://prometheus/base/api/v1/query", "Bearer secret")}
    assert judged.judgement.text == "e: the metrics source answers with HTTP status 302"


async def test_an_unreachable_source_tells_no_address() -> None:
    clock = ManualClock()
    client = WebhookClient()
    (objective,) = objectives_of(errors={"metric": "m", "bad": {"code": "y"}})
    gate = MetricsGate(client, {"main": MetricSource("http://127.0.0.1:1")}, clock)
    judged = await gate.judge(Key("shop", "web"), WEB, due(clock, objective))
    await client.close()
    assert (judged.judgement.verdict, judged.judgement.text) == (
        Verdict.NO_DATA, "e: the metrics source does not answer"
    )  # fmt: skip
