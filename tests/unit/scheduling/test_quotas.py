"""Quotas of namespaces: what is used, what a decision may still give, and how it says so."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.api.federatedtype import FederatedType, PathDefinition, from_config
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.resources import DEPLOYMENTS, JOBS, Object
from federation.planning.accounts.accountledger import Ledger
from federation.planning.accounts.claim import CLAIM, Claim, Use, find_unpaid
from federation.planning.federatedobject.finished import run_of
from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.framework.names import PRICE_PER_HOUR
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.quotaheadroom import amounts_of, limit_of, to_text
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit, a_unit, changed_unit
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.quotas import Quotas, uses_of
from federation.scheduling.snapshot import Snapshot

ENGINE = Engine(load_plugins())
CPU = f"{names.PRICE_PREFIX}cpu"
EAST = a_cluster("east").labelled(**{CPU: "0.04"}).with_nodes(20, cpu="2").built()
WEST = a_cluster("west").labelled(**{CPU: "0.02"}).with_nodes(20, cpu="2").built()
SNAPSHOT = Snapshot(1, (EAST, WEST))
DEPLOYMENT = FederatedType("d", DEPLOYMENTS, (), PathDefinition(replicas_spec=("spec", "replicas")))
WEB, OTHER = ("default", "web"), ("default", "other")


def a_ledger(**overall: Any) -> Quotas:
    ledger = Quotas()
    limits = {PRICE_PER_HOUR if name == "price" else name: value for name, value in overall.items()}
    metadata = {"namespace": "default", "name": "team"}
    assert ledger.put({"metadata": metadata, "spec": {"overall": limits}})
    return ledger


def claimed(request: Mapping[str, int], replicas: Mapping[str, int], key: tuple[str, str] = OTHER) -> Object:
    """Return a workload that has claimed its usage."""
    claim = Claim({name: Use(count, dict(request)) for name, count in replicas.items()})
    metadata = {"namespace": key[0], "name": key[1], "annotations": CLAIM.entry(claim)}
    return {"metadata": metadata, "spec": {"template": {}}}


def observe(
    ledger: Quotas, request: Mapping[str, int], replicas: Mapping[str, int], key: tuple[str, str] = OTHER
) -> bool:
    return ledger.observe(key, claimed(request, replicas, key), DEPLOYMENT)


def a_placed(
    replicas: Mapping[str, int], cpu: str = "1", wanted: int = 1, **metadata: Any
) -> tuple[dict[str, Any], FederatedType]:
    """Return a federated Deployment with its placement, and its type."""
    pod = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}
    template = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": wanted, "template": {"metadata": {}, "spec": pod}},
    }
    placed = [{"cluster": name} for name in replicas]
    own = [
        {"cluster": name, "patches": [{"op": "replace", "path": "/spec/replicas", "value": count}]}
        for name, count in replicas.items()
    ]
    spec = {
        "template": template,
        "placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": placed}],
        "overrides": [{"controller": names.GLOBAL_SCHEDULER, "clusters": own}],
    }
    identity = {"namespace": "default", "name": "web", "generation": 1, "resourceVersion": "1"}
    return {"metadata": identity | metadata, "spec": spec}, DEPLOYMENT


def decide(ledger: Quotas, unit: SchedulingUnit) -> Decision:
    headroom = ledger.headroom(WEB, unit, SNAPSHOT.by_name)
    return ENGINE.decide(changed_unit(unit, quota=headroom), SNAPSHOT, DEFAULT_PROFILE, now=NOW)


def a_web(replicas: int, **fields: Any) -> SchedulingUnit:
    return a_divided_unit(replicas, request={"cpu": 1000}, **fields)


def test_replicas_beyond_the_quota_are_not_placed() -> None:
    ledger = a_ledger(cpu="5")
    observe(ledger, {"cpu": 500}, {"east": 2})
    decision = decide(ledger, a_web(10))
    assert (sum(decision.placements.values()), decision.unplaced) == (4, 6)
    assert decision.shortage == (
        "6 of 10 replicas have no place within FederatedResourceQuota team: 5 cpu, of which other workloads use 1"
    )
    assert decision.exceeded


def test_a_decision_counts_until_a_newer_version_of_its_object_is_seen() -> None:
    """A write that was answered late may have been made."""

    def free() -> int:
        return sum(filter(None, decide(ledger, a_web(9)).placements.values()))

    ledger = a_ledger(cpu="5")
    federated, type_ = a_placed({"east": 3}, resourceVersion="7")
    assert ledger.with_claim(OTHER, federated, type_, {"metadata": {}}, SNAPSHOT.by_name)
    before = claimed({"cpu": 1000}, {"east": 1})
    before["metadata"]["resourceVersion"] = "7"
    ledger.observe(OTHER, before, type_)
    assert free() == 2, "the version that was decided on says nothing"
    before["metadata"]["resourceVersion"] = "8"
    ledger.observe(OTHER, before, type_)
    assert free() == 4, "somebody else was faster, so it was not written"


def test_a_later_write_that_changes_nothing_ends_the_claim_of_one_without_an_answer() -> None:
    ledger = a_ledger(cpu="5")
    federated, type_ = a_placed({"east": 3}, resourceVersion="7")
    ledger.with_claim(OTHER, federated, type_, {"metadata": {}}, SNAPSHOT.by_name)
    again = {**federated, "metadata": {**federated["metadata"], "resourceVersion": "9"}}
    patch = ledger.with_claim(OTHER, again, type_, None, SNAPSHOT.by_name)
    assert patch is not None
    written = apply_merge_patch(again, patch)
    question = ledger.with_claim(OTHER, written, type_, None, SNAPSHOT.by_name)
    assert question is not None
    assert apply_merge_patch(written, question) == written, "a write that changes nothing finds what is stored"
    assert sum(filter(None, decide(ledger, a_web(9)).placements.values())) == 2
    ledger.settle("default", OTHER, written)
    assert ledger.with_claim(OTHER, written, type_, None, SNAPSHOT.by_name) is None
    assert sum(filter(None, decide(ledger, a_web(9)).placements.values())) == 5


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
    ledger = a_ledger(cpu="2")
    observe(ledger, {"cpu": 1000}, running, WEB)
    decision = decide(ledger, a_web(8, current=running))
    assert (decision.placements, decision.unplaced) == (running, 2)
    assert decide(ledger, a_web(5, current=running)).exceeded == ""


def test_a_claim_counts_before_it_is_observed_and_not_if_it_was_not_written() -> None:
    ledger = a_ledger(pods="5")
    patch = ledger.with_claim(OTHER, *a_placed({"east": 3}), {"metadata": {}}, SNAPSHOT.by_name)
    assert patch is not None
    assert sum(decide(ledger, a_web(10)).placements.values()) == 2
    ledger.revoke("default", OTHER)
    assert sum(decide(ledger, a_web(10)).placements.values()) == 5


def test_what_is_observed_after_a_decision_counts_in_its_place() -> None:
    ledger = a_ledger(pods="5")
    assert observe(ledger, {}, {"east": 3})
    assert not observe(ledger, {}, {"east": 3})
    assert observe(ledger, {}, {"east": 1})
    assert sum(decide(ledger, a_web(10)).placements.values()) == 4
    ledger.wait("default", OTHER, is_short=True)
    assert ledger.forget("default", OTHER)
    assert ledger.waiting("default") == frozenset()
    assert not ledger.forget("default", OTHER)


def test_usage_is_known_by_cluster() -> None:
    ledger = a_ledger(cpu="5", price="1")
    observe(ledger, {"cpu": 500}, {"east": 2, "west": 1}, WEB)
    total, used = ledger.used("default", "team", SNAPSHOT.by_name)
    assert to_text("cpu", total["cpu"]) == "1500m"
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
    observe(ledger, {"cpu": 1000}, others)
    observe(ledger, {"cpu": 1000}, current, WEB)
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
    observe(ledger, {"cpu": 500}, {"east": 2, "west": 0}, WEB)
    assert ledger.used("default", "team", SNAPSHOT.by_name) == ({"cpu": 1000}, {"east": {"cpu": 1000}})


def test_a_kind_that_is_not_federated_any_more_uses_nothing() -> None:
    ledger = a_ledger(pods="5")
    federated, _ = a_placed({"east": 2})
    assert not ledger.observe(OTHER, federated, None)
    assert ledger.used("default", "team", SNAPSHOT.by_name) == ({"pods": 0}, {})


def test_all_pods_of_an_object_with_components_are_charged() -> None:
    source = {"group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob", "pluralName": "pytorchjobs"}
    config = {"metadata": {"name": "x"}, "spec": {"sourceType": {**source, "scope": "Namespaced"}}}
    pod = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    roles = {"Master": {"template": pod}, "Worker": {"replicas": 7, "template": pod}}
    template = {"kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": roles}}
    placed = [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}]}]
    federated = {"metadata": {"name": "train"}, "spec": {"template": template, "placements": placed}}
    uses = uses_of(federated, from_config(config))
    assert uses is not None
    assert amounts_of(uses, ("requests.cpu", "pods"), SNAPSHOT.by_name) == {"requests.cpu": 16000, "pods": 8}


def test_a_cluster_that_left_or_has_no_rates_costs_nothing_and_its_replicas_count() -> None:
    free = a_cluster("free").with_nodes(1, cpu="2").built()
    uses = {name: Use(count, {"cpu": 1000}) for name, count in {"east": 2, "free": 3, "gone": 4, "west": 0}.items()}
    amounts = amounts_of(
        uses, [PRICE_PER_HOUR, "pods", "requests.cpu", "requests.memory"], {"east": EAST, "free": free, "west": WEST}
    )
    assert {name: to_text(name, amount) for name, amount in amounts.items()} == {
        PRICE_PER_HOUR: "0.08",
        "pods": "9",
        "requests.cpu": "9",
        "requests.memory": "0",
    }


def write(ledger: Quotas, federated: Object, *, is_reported: bool = True) -> Object:
    """Write a workload's claim as the scheduler does, and let members report its content."""
    patch = ledger.with_claim(WEB, federated, DEPLOYMENT, {"spec": federated["spec"]}, SNAPSHOT.by_name)
    assert patch is not None
    written: Object = apply_merge_patch(federated, patch)
    written["metadata"]["generation"] = 1 + federated["metadata"]["generation"]
    if is_reported:
        report(written)
    ledger.observe(WEB, written, DEPLOYMENT)
    return written


def report(federated: Object) -> None:
    placed = federated["spec"]["placements"][0]["placement"]
    entries = [{"cluster": each["cluster"], "status": "OK"} for each in placed]
    federated["status"] = {"syncedGeneration": federated["metadata"]["generation"], "clusters": entries}


def changed(federated: Object, replicas: Mapping[str, int], cpu: str = "1") -> Object:
    """Return the workload with another placement and template, and what members and the scheduler have written."""
    other, _ = a_placed(replicas, cpu)
    return {**federated, "spec": other["spec"]}


def used(ledger: Quotas) -> str:
    return to_text("cpu", ledger.used("default", "team", SNAPSHOT.by_name)[0]["cpu"])


def may(federated: Object) -> dict[str, str]:
    claim = CLAIM.of(federated)
    assert claim is not None
    return {name: to_text("cpu", use.amounts().get("cpu", 0)) for name, use in claim.may.items()}


def test_what_grows_beyond_a_quota_keeps_its_claim_and_waits() -> None:
    ledger = a_ledger(cpu="10")
    web = write(ledger, a_placed({"east": 4})[0])
    grown = write(ledger, changed(web, {"east": 4}, cpu="3"))
    assert (may(grown), used(ledger)) == ({"east": "4"}, "4")
    assert ledger.withheld("default", WEB) == "FederatedResourceQuota team: 10 cpu"
    assert ledger.waiting("default") == {WEB}
    assert find_unpaid(grown, "east", Use(4, {"cpu": 3000})) == "cpu"
    smaller = write(ledger, changed(grown, {"east": 4}, cpu="2"))
    assert (may(smaller), used(ledger), ledger.waiting("default")) == ({"east": "8"}, "8", frozenset())


def test_what_is_given_up_comes_back_when_members_have_reported_it() -> None:
    ledger = a_ledger(cpu="10")
    web = write(ledger, a_placed({"east": 4, "west": 4})[0])
    shrunk = write(ledger, changed(web, {"east": 1}), is_reported=False)
    assert (may(shrunk), used(ledger)) == ({"east": "1"}, "8")
    shrunk["status"]["syncedGeneration"] = shrunk["metadata"]["generation"]
    ledger.observe(WEB, shrunk, DEPLOYMENT)
    assert used(ledger) == "8", "the copy in west is still there"
    report(shrunk)
    ledger.observe(WEB, shrunk, DEPLOYMENT)
    assert used(ledger) == "1"


def test_a_move_is_paid_once_and_needs_no_room_for_both_copies() -> None:
    ledger = a_ledger(cpu="4")
    web = write(ledger, a_placed({"east": 4})[0])
    moved = write(ledger, changed(web, {"west": 4}), is_reported=False)
    assert (may(moved), used(ledger), ledger.withheld("default", WEB)) == ({"west": "4"}, "4", "")


def test_what_has_ended_or_is_suspended_uses_nothing() -> None:
    template = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web"}}
    job = FederatedType("j", JOBS, (), PathDefinition(replicas_spec=("spec", "parallelism")))
    pod = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}
    template["spec"] = {"parallelism": 2, "template": pod}
    placed = {"placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}]}]}
    federated: Object = {"metadata": {"namespace": "default", "name": "web"}, "spec": {"template": template, **placed}}
    assert uses_of(federated, job) == {"east": Use(2, {"cpu": 1000})}
    ended = {"clusters": [{"cluster": "east", "finished": {"run": run_of(federated), "succeeded": True}}]}
    assert uses_of({**federated, "status": ended}, job) == {"east": Use(0, {"cpu": 1000})}
    template["spec"]["suspend"] = True
    assert uses_of(federated, job) == {"east": Use(0, {"cpu": 1000})}


def test_a_quota_whose_limits_are_not_valid_lets_nothing_grow() -> None:
    ledger = a_ledger(cpu="10")
    web = write(ledger, a_placed({"east": 2})[0])
    ledger.put({"metadata": {"namespace": "default", "name": "team"}, "spec": {"overall": {"cpu": "many"}}})
    grown = write(ledger, changed(web, {"east": 3}))
    assert may(grown) == {"east": "2"}
    assert ledger.withheld("default", WEB) == (
        "FederatedResourceQuota team, whose spec.overall[cpu] is not a valid amount"
    )


def test_without_a_quota_a_claim_is_removed_and_its_objects_are_scheduled_again() -> None:
    ledger = a_ledger(cpu="10")
    web = write(ledger, a_placed({"east": 2})[0])
    assert ledger.remove("default", "team") == {WEB}
    patch = ledger.with_claim(WEB, web, DEPLOYMENT, None, SNAPSHOT.by_name)
    assert patch == {"metadata": {"resourceVersion": "1", "annotations": {CLAIM.name: None}}}
    assert ledger.with_claim(WEB, apply_merge_patch(web, patch), DEPLOYMENT, None, SNAPSHOT.by_name) is None


def test_content_of_a_workload_is_compared_with_its_claim_only() -> None:
    web, _ = a_placed({"east": 2})
    assert find_unpaid(web, "east", Use(50)) == ""
    assert find_unpaid(write(a_ledger(cpu="10"), web), "east", None) == ""
    assert find_unpaid(write(a_ledger(cpu="10"), web), "west", Use(1)) == "pods"


def a_bare_ledger(claim: int | None = 1, version: int = 1) -> Ledger[int]:
    ledger = Ledger[int]()
    ledger.report("web", claim, version)
    return ledger


def counted(ledger: Ledger[int]) -> int:
    return ledger.used(lambda claim: {"cpu": claim}).get("cpu", 0)


def test_a_refusal_forgets_the_last_decision_only() -> None:
    ledger = a_bare_ledger()
    ledger.assume("web", 4, 1)
    ledger.assume("web", 3, 2)
    ledger.revoke("web")
    assert counted(ledger) == 4, "it was written, and is not observed yet"
    assert ledger.report("web", 2, 2)
    assert counted(ledger) == 2


def test_the_largest_of_all_open_decisions_counts() -> None:
    ledger = a_bare_ledger()
    for claim in (4, 2, 4, 3):
        ledger.assume("web", claim, 1)
    assert (counted(ledger), ledger.assumed("web"), len(ledger.claims("web"))) == (4, 3, 4)
    assert not ledger.report("web", 1, 1)
    assert ledger.report("web", 1, 2), "none of them was written"
    assert counted(ledger) == 1


def test_a_write_that_changed_nothing_shows_that_no_earlier_one_was_made() -> None:
    ledger = a_bare_ledger()
    ledger.assume("web", 4, 1)
    assert (ledger.is_open("web", 1), ledger.is_open("web", 2)) == (True, False)
    ledger.settle("web", 1)
    assert (counted(ledger), ledger.is_open("web", 1)) == (1, False)


def test_a_decision_about_an_older_version_ends_with_a_conflict_and_counts_nothing() -> None:
    ledger = a_bare_ledger(version=2)
    ledger.assume("web", 4, 1)
    assert (counted(ledger), ledger.assumed("web")) == (1, None)


def test_a_payer_without_a_claim_has_decisions_too() -> None:
    ledger = a_bare_ledger(None)
    assert (counted(ledger), ledger.paid("web", lambda claim: {"cpu": claim})) == (0, None)
    ledger.assume("web", 4, 1)
    assert (counted(ledger), list(ledger.payers())) == (4, ["web"])
    assert ledger.remove("web")
    assert not ledger.remove("web")
    assert counted(ledger) == 0
