"""Quotas of namespaces: what is used, what a decision may still give, and how it says so."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.api.federatedtype import from_config
from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.framework.names import PRICE_PER_HOUR
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.quotaheadroom import Charge, amounts_of, limit_of, to_text
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit, a_unit
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.quotas import QuotaLedger, charge_of
from federation.scheduling.snapshot import Snapshot

ENGINE = Engine(load_plugins())
CPU = f"{names.PRICE_PREFIX}cpu"
EAST = a_cluster("east").labelled(**{CPU: "0.04"}).with_nodes(20, cpu="2").built()
WEST = a_cluster("west").labelled(**{CPU: "0.02"}).with_nodes(20, cpu="2").built()
SNAPSHOT = Snapshot(1, (EAST, WEST))
WEB = ("default", "web")


def a_ledger(**overall: Any) -> QuotaLedger:
    ledger = QuotaLedger()
    limits = {PRICE_PER_HOUR if name == "price" else name: value for name, value in overall.items()}
    metadata = {"namespace": "default", "name": "team"}
    assert ledger.put({"metadata": metadata, "spec": {"overall": limits}})
    return ledger


def decide(ledger: QuotaLedger, unit: SchedulingUnit) -> Decision:
    headroom = ledger.headroom(WEB, unit, SNAPSHOT.by_name)
    return ENGINE.decide(replace(unit, quota=headroom), SNAPSHOT, DEFAULT_PROFILE, now=NOW)


def a_web(replicas: int, **fields: Any) -> SchedulingUnit:
    return a_divided_unit(replicas, request={"cpu": 1000}, **fields)


def test_replicas_beyond_the_quota_are_not_placed() -> None:
    ledger = a_ledger(cpu="5")
    ledger.observe("default", ("default", "other"), Charge({"cpu": 500}, {"east": 2}))
    decision = decide(ledger, a_web(10))
    assert (sum(decision.placements.values()), decision.unplaced) == (4, 6)
    assert decision.shortage == (
        "6 of 10 replicas have no place within FederatedResourceQuota team: 5 cpu, of which other workloads use 1"
    )
    assert decision.exceeded


def test_a_budget_limits_the_price_of_a_namespace() -> None:
    decision = decide(a_ledger(price="0.1"), a_web(10, weights={"east": 1, "west": 1}))
    assert sum({"east": 4, "west": 2}[name] * (count or 0) for name, count in decision.placements.items()) in (8, 10)
    assert decision.unplaced == 7
    assert "FederatedResourceQuota team: 0.1 price per hour" in decision.shortage


def test_nothing_is_placed_without_room_and_the_quota_is_named() -> None:
    decision = decide(a_ledger(**{"requests.cpu": "500m"}), a_web(2))
    assert decision.outcome is Outcome.QUOTA_EXCEEDED
    assert decision.reason == "FederatedResourceQuota team: 500m requests.cpu leave no room for any of 2 replicas"


def test_copies_are_placed_all_or_not_at_all() -> None:
    unit = a_unit(desired_replicas=3, request={"cpu": 1000})
    assert decide(a_ledger(cpu="6"), unit).placements == {"east": None, "west": None}
    refused = decide(a_ledger(cpu="5"), unit)
    assert refused.outcome is Outcome.QUOTA_EXCEEDED
    assert refused.reason == "its copies have no place within FederatedResourceQuota team: 5 cpu"


def test_running_replicas_stay_when_a_quota_is_lowered() -> None:
    running = {"east": 3, "west": 3}
    decision = decide(a_ledger(cpu="2"), a_web(8, current=running))
    assert (decision.placements, decision.unplaced) == (running, 2)
    assert decide(a_ledger(cpu="2"), a_web(5, current=running)).exceeded == ""


def test_a_decision_counts_before_it_is_observed() -> None:
    ledger = a_ledger(pods="5")
    ledger.assume("default", ("default", "other"), Charge({}, {"east": 3}))
    assert sum(decide(ledger, a_web(10)).placements.values()) == 2
    ledger.assume("default", ("default", "other"), None)
    assert sum(decide(ledger, a_web(10)).placements.values()) == 5


def test_what_is_observed_after_a_decision_counts_in_its_place() -> None:
    ledger, other, decided = a_ledger(pods="5"), ("default", "other"), Charge({}, {"east": 3})
    ledger.assume("default", other, decided)
    assert ledger.observe("default", other, decided)
    assert not ledger.observe("default", other, decided)
    assert ledger.observe("default", other, Charge({}, {"east": 1}))
    assert sum(decide(ledger, a_web(10)).placements.values()) == 4
    ledger.wait("default", other, is_short=True)
    assert ledger.observe("default", other, None)
    assert ledger.waiting("default") == frozenset()
    assert not ledger.observe("default", other, None)


def test_usage_is_known_by_cluster() -> None:
    ledger = a_ledger(cpu="5", price="1")
    ledger.observe("default", WEB, Charge({"cpu": 500}, {"east": 2, "west": 1}))
    quota = ledger.quota("default", "team")
    assert quota is not None
    used = ledger.used("default", quota, SNAPSHOT.by_name)
    assert [(name, to_text("cpu", amounts["cpu"])) for name, amounts in used.items()] == [
        ("east", "1"),
        ("west", "500m"),
    ]
    assert [to_text(PRICE_PER_HOUR, amounts[PRICE_PER_HOUR]) for amounts in used.values()] == [
        "0.04",
        "0.01",
    ]


def test_what_waits_is_known_until_the_quota_is_gone() -> None:
    ledger = a_ledger(cpu="1")
    ledger.wait("default", WEB, is_short=True)
    assert ledger.waiting("default") == {WEB}
    assert ledger.remove("default", "team") == {WEB}
    assert "default" not in ledger
    assert ledger.headroom(WEB, a_web(1), {}) is None


@pytest.mark.parametrize(
    ("name", "text"), [("cpu", "1500m"), ("memory", "3Gi"), ("pods", "7"), (PRICE_PER_HOUR, "2.5")]
)
def test_amounts_are_shown_as_written(name: str, text: str) -> None:
    assert to_text(name, limit_of(name, text)) == text


counts = st.dictionaries(st.sampled_from(("east", "west")), st.integers(0, 6))


@given(st.integers(1, 20), counts, counts, st.integers(0, 12), st.sampled_from(("", "0.05", "0.2")))
def test_no_decision_exceeds_a_quota_by_growing(
    wanted: int, current: Mapping[str, int], others: Mapping[str, int], cpu: int, price: str
) -> None:
    ledger = a_ledger(cpu=str(cpu), **({"price": price} if price else {}))
    ledger.observe("default", ("default", "other"), Charge({"cpu": 1000}, others))
    current = {name: count for name, count in current.items() if count}
    decision = decide(ledger, a_web(wanted, current=current))
    placed, running = sum((count or 0) for count in decision.placements.values()), sum(current.values())
    if decision.outcome is Outcome.QUOTA_EXCEEDED:
        assert not running
        return
    assert placed == min(wanted, running) or placed + sum(others.values()) <= cpu
    if not price:
        assert placed == max(min(wanted, running), min(wanted, max(0, cpu - sum(others.values()))))


def test_a_quota_is_used_only_where_replicas_are() -> None:
    ledger = a_ledger(cpu="5")
    ledger.observe("default", WEB, Charge({"cpu": 500}, {"east": 2, "west": 0}))
    quota = ledger.quota("default", "team")
    assert quota is not None
    assert ledger.used("default", quota, SNAPSHOT.by_name) == {"east": {"cpu": 1000}}


def test_a_kind_that_is_not_federated_any_more_uses_nothing() -> None:
    pods = {"metadata": {}, "spec": {"containers": [{"name": "main"}]}}
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2, "template": pods}}
    assert charge_of({"metadata": {"name": "web"}, "spec": {"template": template}}, None) is None


def test_all_pods_of_an_object_with_components_are_charged() -> None:
    source = {"group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob", "pluralName": "pytorchjobs"}
    config = {"metadata": {"name": "x"}, "spec": {"sourceType": {**source, "scope": "Namespaced"}}}
    pod = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    roles = {"Master": {"template": pod}, "Worker": {"replicas": 7, "template": pod}}
    template = {"kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": roles}}
    placed = [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}]}]
    charge = charge_of(
        {"metadata": {"name": "train"}, "spec": {"template": template, "placements": placed}}, from_config(config)
    )
    assert charge is not None
    assert amounts_of(charge, ("requests.cpu", "pods"), SNAPSHOT.by_name) == {"requests.cpu": 16000, "pods": 8}


def test_a_cluster_that_left_or_has_no_rates_costs_nothing_and_its_replicas_count() -> None:
    free = a_cluster("free").with_nodes(1, cpu="2").built()
    charge = Charge({"cpu": 1000}, {"east": 2, "free": 3, "gone": 4, "west": 0})
    amounts = amounts_of(
        charge, [PRICE_PER_HOUR, "pods", "requests.cpu", "requests.memory"], {"east": EAST, "free": free, "west": WEST}
    )
    assert {name: to_text(name, amount) for name, amount in amounts.items()} == {
        PRICE_PER_HOUR: "0.08",
        "pods": "9",
        "requests.cpu": "9",
        "requests.memory": "0",
    }
