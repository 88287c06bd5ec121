"""Decisions: outcomes, reasons, failures, and remote plugins."""

import json
from dataclasses import replace
from typing import Any

import pytest

from federation.apimachinery.errors import PluginError
from federation.scheduling.availability import availability
from federation.scheduling.engine import Engine, Outcome
from federation.scheduling.explain import to_json
from federation.scheduling.explanations import rows
from federation.scheduling.framework.profile import DEFAULT_PROFILE, PluginRef, Profile, refs
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit, a_unit
from federation.scheduling.framework.types import (
    SUCCESS,
    Cluster,
    ClusterScore,
    Division,
    PluginRequest,
    PluginResponse,
    SchedulingMode,
    error,
    unschedulable,
)
from federation.scheduling.snapshot import Snapshot

EAST, NORTH, WEST = (a_cluster(name).offering(cpu="10", memory="10Gi").built() for name in ("east", "north", "west"))
ALL = Snapshot(1, (EAST, NORTH, WEST))


def plugin(**methods: Any) -> Any:
    return type("Fake", (), {name: staticmethod(method) for name, method in methods.items()})()


def engine_with(**plugins: Any) -> Engine:
    return Engine(PluginRegistry({name: lambda _, p=p: p for name, p in plugins.items()}))


def decide(engine: Engine, profile: Profile, unit: Any = None, snapshot: Snapshot = ALL) -> Any:
    return engine.decide(unit or a_unit(), snapshot, profile, now=NOW)


def test_the_default_profile_places_everywhere() -> None:
    decision = decide(Engine(load_plugins()), DEFAULT_PROFILE)
    assert decision.outcome is Outcome.SCHEDULED
    assert decision.placements == {"east": None, "north": None, "west": None}
    assert decision.reason == "3/3 clusters are available"


def test_the_default_profile_divides_by_free_capacity() -> None:
    full = a_cluster("full").offering(cpu="10", memory="10Gi").free(cpu="0").built()
    decision = decide(Engine(load_plugins()), DEFAULT_PROFILE, a_divided_unit(8), Snapshot(1, (EAST, WEST, full)))
    assert decision.placements == {"east": 4, "west": 4}


def test_equal_decisions_come_from_equal_inputs() -> None:
    unit = a_divided_unit(17, request={"cpu": 100})
    first = to_json(decide(Engine(load_plugins()), DEFAULT_PROFILE, unit))
    engine = Engine(load_plugins())
    assert [to_json(decide(engine, DEFAULT_PROFILE, unit)) for _ in range(2)] == [first, first]


def test_results_are_reused_only_for_units_that_ask_the_same() -> None:
    asked: list[str] = []

    def answer(unit: Any, cluster: Any, state: Any) -> Any:
        asked.append(cluster.name)
        return SUCCESS

    shaped = plugin(filter=answer, score=lambda *_: 5, cache_key=lambda unit: unit.labels.get("shape"))
    engine, profile = engine_with(p=shaped), Profile(filter=refs("p"), score=refs("p"))
    for shape in ("a", "a", "b"):
        decide(engine, profile, a_unit(labels={"shape": shape}))
    assert len(asked) == 6
    changed = Snapshot(2, (replace(EAST, labels={"new": "label"}), *ALL.clusters[1:]))
    decide(engine, profile, a_unit(labels={"shape": "a"}), changed)
    assert asked[6:] == ["east"]
    decide(engine, profile, a_unit())
    assert len(asked) == 10


def test_scores_and_selections_are_reused_until_a_cluster_changes() -> None:
    asked: list[str] = []
    picked: list[int] = []

    def score(unit: Any, cluster: Any, state: Any) -> int:
        asked.append(cluster.name)
        return int(cluster.labels.get("score", 1))

    def select(unit: Any, scored: Any, state: Any) -> Any:
        picked.append(len(scored))
        return sorted(scored, key=lambda entry: -entry.score)[:2]

    scores = plugin(score=score, normalise=lambda unit, raw, state: [10 * n for n in raw], cache_key=lambda _: ())
    selects = plugin(select=select, select_cache_key=lambda _: ())
    engine, profile = engine_with(p=scores, q=selects), Profile(score=refs("p"), select=refs("q"))
    for _ in range(2):
        assert list(decide(engine, profile).placements) == ["east", "north"]
    assert (len(asked), picked) == (3, [3])
    changed = Snapshot(2, (*ALL.clusters[:2], replace(WEST, labels={"score": "7"})))
    decision = decide(engine, profile, snapshot=changed)
    assert list(decision.placements) == ["west", "east"]
    assert [entry.score for entry in decision.scored.totals] == [10, 10, 70]
    assert (asked[3:], picked) == (["west"], [3, 3])


def test_a_filter_is_not_called_for_rejected_clusters() -> None:
    asked: list[str] = []

    def answer(unit: Any, cluster: Any, state: Any) -> Any:
        asked.append(cluster.name)
        return SUCCESS

    first = plugin(
        filter=lambda unit, cluster, state: SUCCESS if cluster.name == unit.name else unschedulable("other"),
        cache_key=lambda unit: unit.name,
    )
    second = plugin(filter=answer, cache_key=lambda _: "all alike")
    engine, profile = engine_with(f=first, s=second), Profile(filter=refs("f", "s"))
    for name in ("east", "west", "east"):
        assert set(decide(engine, profile, a_unit(name=name)).placements) == {name}
    assert asked == ["east", "west"]


def test_selections_of_many_shapes_do_not_pile_up() -> None:
    selects = plugin(select=lambda unit, scored, state: scored, select_cache_key=lambda unit: unit.max_clusters)
    engine = engine_with(p=plugin(score=lambda *_: 1, cache_key=lambda _: ()), q=selects)
    profile = Profile(score=refs("p"), select=refs("q"))
    for number in range(200):
        decision = decide(engine, profile, a_unit(max_clusters=number))
    assert decision.scored is not None
    assert len(decision.scored.selected) <= 64


def test_capacity_beyond_64_bits_in_a_report_prevents_no_decision() -> None:
    boasting = a_cluster("east").with_nodes(3, cpu="9E", pods="9E").built()
    unit = a_unit(mode=SchedulingMode.DIVIDE, desired_replicas=3)
    decision = Engine(load_plugins()).decide(unit, Snapshot(1, (boasting,)), DEFAULT_PROFILE, now=NOW)
    assert decision.placements == {"east": 3}
    assert json.loads(to_json(decision))["division"]["room"]["replicas"] == {"east": 2**63 - 1}


def test_a_filter_without_a_cache_key_makes_all_filters_run() -> None:
    asked: list[str] = []

    def answer(unit: Any, cluster: Any, state: Any) -> Any:
        asked.append(cluster.name)
        return SUCCESS

    plugins = {"a": plugin(filter=answer, cache_key=lambda _: ()), "b": plugin(filter=lambda *_: SUCCESS)}
    engine, profile = engine_with(**plugins), Profile(filter=refs("a", "b"))
    for _ in range(2):
        decide(engine, profile)
    assert asked == ["east", "north", "west"] * 2


def test_a_filter_that_depends_on_current_clusters_is_called_for_both_cases() -> None:
    asked: list[tuple[str, bool]] = []

    def answer(unit: Any, cluster: Any, state: Any) -> Any:
        asked.append((cluster.name, cluster.name in unit.current))
        return unschedulable("moving on") if cluster.name in unit.current else SUCCESS

    minding = plugin(filter=answer, cache_key=lambda _: ())
    type(minding).DEPENDS_ON_CURRENT = True
    engine, profile = engine_with(p=minding), Profile(filter=refs("p"))
    for _ in range(2):
        assert set(decide(engine, profile, a_unit(current={"east": None})).placements) == {"north", "west"}
        assert set(decide(engine, profile, a_unit(current={"west": None})).placements) == {"east", "north"}
        assert set(decide(engine, profile).placements) == {"east", "north", "west"}
    assert len(asked) == len(set(asked)) == 5


def test_a_lenient_filter_rejects_none_rather_than_all() -> None:
    lenient = plugin(filter=lambda unit, cluster, _: unit.labels.get(cluster.name, SUCCESS), cache_key=lambda _: ())
    type(lenient).IS_LENIENT = True
    strict = plugin(filter=lambda _, cluster, state: unschedulable("no") if cluster.name == "west" else SUCCESS)
    full = unschedulable("full")
    for shape in (None, lambda unit: frozenset(unit.labels)):
        type(strict).cache_key = staticmethod(shape) if shape else None
        engine, profile = engine_with(s=strict, l=lenient), Profile(filter=refs("s", "l"))
        some = decide(engine, profile, a_unit(labels={"east": full}))
        assert set(some.placements) == {"north"}
        everybody = decide(engine, profile, a_unit(labels={"east": full, "north": full}))
        assert set(everybody.placements) == {"east", "north"}
        assert set(everybody.filtered.rejected) == {"west"}


@pytest.mark.parametrize("point", ["filter", "score"])
def test_a_plugin_that_fails_for_one_cluster_is_ignored_for_all_when_it_may_be(point: str) -> None:
    def answer(unit: Any, cluster: Any, state: Any) -> Any:
        if cluster.name == "west":
            return error("cannot tell")
        return unschedulable("no") if point == "filter" else 7

    failing = plugin(**{point: answer}, cache_key=lambda _: ())
    profile = Profile(**{point: refs("p")})
    for _ in range(2):
        assert decide(engine_with(p=failing), profile).outcome is Outcome.PLUGIN_FAILED
    type(failing).is_ignorable = True
    engine = engine_with(p=failing)
    for _ in range(2):
        decision = decide(engine, profile)
        assert set(decision.placements) == {"east", "north", "west"}
        assert [(ignored.point, ignored.reasons) for ignored in decision.ignored] == [(point, ("cannot tell",))]


def test_nothing_is_decided_for_a_sticky_unit_that_is_placed() -> None:
    decision = decide(engine_with(), Profile(filter=refs("unknown")), a_unit(sticky=True, current={"gone": 3}))
    assert decision.outcome is Outcome.STICKY
    assert decision.is_success
    assert decision.placements == {"gone": 3}


def test_a_sticky_unit_that_grew_reports_its_unplaced_replicas() -> None:
    grown = a_unit(sticky=True, current={"gone": 3}, mode=SchedulingMode.DIVIDE, desired_replicas=5)
    decision = decide(engine_with(), Profile(), grown)
    assert decision.placements == {"gone": 3}
    assert decision.shortage == "2 of 5 replicas have no place within its first placement"
    assert decision.reason.endswith(f"; {decision.shortage}")


def test_reasons_are_counted_and_sorted() -> None:
    def answer(unit: Any, cluster: Cluster, state: Any) -> Any:
        return unschedulable("too far", "too dear") if cluster.name != "west" else unschedulable("too far")

    decision = decide(engine_with(p=plugin(filter=answer)), Profile(filter=refs("p")))
    assert decision.outcome is Outcome.NO_FEASIBLE_CLUSTER
    assert not decision.placements
    assert decision.reason == "0/3 clusters are available: 2 too dear, 3 too far"


def test_a_rejection_without_a_reason_names_the_plugin() -> None:
    decision = decide(engine_with(p=plugin(filter=lambda *_: unschedulable())), Profile(filter=refs("p")))
    assert decision.reason == "0/3 clusters are available: 3 filtered by p"
    assert availability(ALL, None) == "0/3 clusters are available"


def test_later_filters_are_not_called_for_rejected_clusters() -> None:
    seen: list[str] = []

    def second(unit: Any, cluster: Cluster, state: Any) -> Any:
        seen.append(cluster.name)
        return SUCCESS

    only_west = plugin(filter=lambda unit, cluster, state: SUCCESS if cluster.name == "west" else unschedulable("no"))
    nothing = plugin(filter=lambda *_: unschedulable("no"))
    engine = engine_with(first=only_west, second=plugin(filter=second), nothing=nothing)
    decide(engine, Profile(filter=refs("first", "second")))
    assert seen == ["west"]
    decide(engine, Profile(filter=refs("nothing", "second")))
    assert seen == ["west"]


@pytest.mark.parametrize(
    ("methods", "profile", "reason"),
    [
        ({"filter": lambda *_: error("lost")}, Profile(filter=refs("p")), "p failed in filter: lost"),
        ({"filter": lambda *_: 1 // 0}, Profile(filter=refs("p")), "p failed in filter: ZeroDivisionError: "),
        ({"score": lambda *_: error("no idea")}, Profile(score=refs("p")), "p failed in score: no idea"),
        ({"score": lambda *_: 101}, Profile(score=refs("p")), "p failed in score: its scores are not integers"),
        ({"score": lambda *_: -1}, Profile(score=refs("p")), "p failed in score: its scores are not integers"),
        ({"score": lambda *_: True}, Profile(score=refs("p")), "p failed in score: its scores are not integers"),
        (
            {"score": lambda *_: 1, "normalise": lambda *_: [1]},
            Profile(score=refs("p")),
            "p failed in score: 1 answers for 3 clusters",
        ),
        ({"select": lambda *_: error("cannot")}, Profile(select=refs("p")), "p failed in select: cannot"),
        (
            {"select": lambda unit, scored, state: [scored[0], scored[0]]},
            Profile(select=refs("p")),
            "p failed in select: it selected a cluster twice",
        ),
        (
            {"select": lambda *_: [ClusterScore(a_cluster("stranger").built(), 1)]},
            Profile(select=refs("p")),
            "p failed in select: it selected a cluster twice, or one that was not offered",
        ),
        (
            {"replicas": lambda *_: Division({"east": -1})},
            Profile(replicas=refs("p")),
            "p failed in replicas: it gave -1 replicas to 'east'",
        ),
        (
            {"replicas": lambda *_: Division({"mars": 1})},
            Profile(replicas=refs("p")),
            "p failed in replicas: it gave 1 replicas to 'mars'",
        ),
        ({}, Profile(), "profile 'default-scheduler' has no replicas plugin"),
        ({}, Profile(filter=refs("absent")), "profile default-scheduler: plugin 'absent' is not registered; known: p"),
    ],
)
def test_a_failing_plugin_fails_the_decision(methods: Any, profile: Profile, reason: str) -> None:
    decision = decide(engine_with(p=plugin(**methods)), profile, a_divided_unit(4, current={"east": 4}))
    assert decision.outcome is Outcome.PLUGIN_FAILED
    assert not decision.is_success
    assert not decision.placements
    assert reason in decision.reason
    assert json.loads(to_json(decision))["outcome"] == "PluginFailed"


def test_our_own_errors_are_not_blamed_on_a_plugin() -> None:
    with pytest.raises(AttributeError):
        Engine(PluginRegistry({})).decide(None, ALL, Profile(), now=NOW)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("methods", "profile", "outcome", "reason"),
    [
        (
            {"score": lambda *_: unschedulable("none suits")},
            Profile(score=refs("p")),
            Outcome.NO_FEASIBLE_CLUSTER,
            "p: none suits",
        ),
        (
            {"select": lambda *_: []},
            Profile(select=refs("p")),
            Outcome.NO_FEASIBLE_CLUSTER,
            "no cluster was selected of the available ones",
        ),
        (
            {"replicas": lambda *_: unschedulable("no capacity")},
            Profile(replicas=refs("p")),
            Outcome.NO_REPLICAS_PLACED,
            "p: no capacity",
        ),
        (
            {"replicas": lambda *_: Division({"east": 0})},
            Profile(replicas=refs("p")),
            Outcome.NO_REPLICAS_PLACED,
            "weights and limits leave no room for any of 4 replicas",
        ),
    ],
)
def test_a_refusal_behind_the_filters_is_no_empty_placement(
    methods: Any, profile: Profile, outcome: Outcome, reason: str
) -> None:
    decision = decide(engine_with(p=plugin(**methods)), profile, a_divided_unit(4, current={"east": 4}))
    assert (decision.outcome, decision.reason, decision.placements) == (outcome, reason, {})


def test_replicas_without_a_place_are_reported() -> None:
    dividing = plugin(replicas=lambda *_: Division({"east": 3}))
    decision = decide(engine_with(p=dividing), Profile(replicas=refs("p")), a_divided_unit(5))
    assert decision.is_success
    assert decision.unplaced == 2
    assert decision.reason.endswith("; 2 of 5 replicas have no place within the limits")
    assert json.loads(to_json(decision))["unplaced"] == 2


def test_a_unit_scaled_to_zero_keeps_its_clusters() -> None:
    decision = decide(engine_with(), Profile(), a_divided_unit(0, current={"west": 3, "gone": 1}))
    assert decision.placements == {"west": 0}


def test_a_new_unit_with_zero_replicas_goes_to_every_cluster() -> None:
    assert decide(engine_with(), Profile(), a_divided_unit(0)).placements == {"east": 0, "north": 0, "west": 0}


def test_a_unit_that_does_not_say_how_many_is_not_divided() -> None:
    decision = decide(engine_with(), Profile(), replace(a_divided_unit(1), desired_replicas=None))
    assert decision.outcome is Outcome.NO_REPLICAS_PLACED


def test_weights_multiply_scores() -> None:
    first = plugin(score=lambda unit, cluster, state: 10 if cluster.name == "east" else 0)
    second = plugin(score=lambda unit, cluster, state: 10 if cluster.name == "west" else 0)
    profile = Profile(score=(PluginRef("first", 3), PluginRef("second")))
    decision = decide(engine_with(first=first, second=second), profile)
    assert [entry.score for entry in decision.scored.totals] == [30, 0, 10]


def test_plugins_pass_data_on_through_the_state() -> None:
    def remember(unit: Any, cluster: Any, state: Any) -> Any:
        state.write("p", cluster.name)
        return SUCCESS

    chosen = plugin(
        filter=remember, select=lambda unit, scored, state: [s for s in scored if s.cluster.name == state.read("p")]
    )
    decision = decide(engine_with(p=chosen), Profile(filter=refs("p"), select=refs("p")))
    assert list(decision.placements) == ["west"]


class Remote:
    """A remote plugin for all four extension points."""

    def filter_clusters(self, unit: Any, clusters: Any, state: Any) -> Any:
        responses = yield [PluginRequest(f"filter/{cluster.name}", b"") for cluster in clusters]
        return [SUCCESS if response.status == 200 else unschedulable(response.error) for response in responses]

    def score_clusters(self, unit: Any, clusters: Any, state: Any) -> Any:
        (response,) = yield [PluginRequest("score", b"")]
        return [int(response.body)] * len(clusters)

    def select_clusters(self, unit: Any, scored: Any, state: Any) -> Any:
        yield [PluginRequest("select", b"")]
        return scored[:1]

    def replicas_of_clusters(self, unit: Any, clusters: Any, state: Any) -> Any:
        yield [PluginRequest("replicas", b"")]
        return Division({clusters[0].name: unit.desired_replicas})


REMOTE = Profile(filter=refs("r"), score=refs("r"), select=refs("r"), replicas=refs("r"))


def test_a_remote_plugin_asks_through_whoever_drives_the_engine() -> None:
    run = engine_with(r=Remote()).run(a_divided_unit(3), ALL, REMOTE, now=NOW)
    asked = [next(run)]
    answers = {"filter/east": PluginResponse(0, error="too far")}
    try:
        while True:
            responses = [answers.get(request.url, PluginResponse(200, b"7")) for request in asked[-1]]
            asked.append(run.send(responses))
    except StopIteration as stop:
        decision = stop.value
    assert [len(requests) for requests in asked] == [3, 1, 1, 1]
    assert decision.placements == {"north": 3}
    assert decision.filtered.rejected["east"].reasons == ("too far",)


def test_a_remote_plugin_with_an_incomplete_response_fails() -> None:
    class Short:
        def filter_clusters(self, unit: Any, clusters: Any, state: Any) -> Any:
            yield []
            return [SUCCESS]

    run = engine_with(s=Short()).run(a_unit(), ALL, Profile(filter=refs("s")), now=NOW)
    next(run)
    with pytest.raises(StopIteration) as stop:
        run.send([])
    assert "1 answers for 3 clusters" in stop.value.value.reason


def test_decide_raises_for_a_remote_plugin() -> None:
    with pytest.raises(PluginError, match=r"drive Engine\.run"):
        decide(engine_with(r=Remote()), REMOTE)


def test_many_profiles_do_not_pile_up() -> None:
    engine = engine_with()
    for index in range(260):
        assert decide(engine, Profile(name=f"p{index}")).is_success
    assert len(engine._frameworks) == 256


def test_durations_are_measured_when_there_is_a_clock() -> None:
    ticks = iter(range(1000))
    engine = Engine(load_plugins(), monotonic=lambda: float(next(ticks)))
    assert decide(engine, DEFAULT_PROFILE, a_divided_unit(2)).is_success
    assert next(ticks) > 10


def test_an_explanation_reads_as_one_row_per_cluster() -> None:
    far = a_cluster("far").tainted("dedicated", "gpu").offering(cpu="10", memory="1Gi").built()
    unit = a_divided_unit(5, current={"east": 2, "old": 1}, request={"cpu": 500})
    decision = decide(Engine(load_plugins()), DEFAULT_PROFILE, unit, Snapshot(1, (EAST, far, WEST)))
    explanation = json.loads(to_json(decision, {"policy": "p"}))
    assert explanation["policy"] == "p"
    found = {row.name: row for row in rows(explanation)}
    assert [row.name for row in rows(explanation)][-1] == "far"
    assert found["far"].rejected_by == "TaintToleration"
    assert "dedicated" in found["far"].reasons[0]
    assert found["east"].is_selected
    assert found["east"].previous == 2
    assert found["east"].replicas is not None
    assert set(found["east"].scores) == {ref.name for ref in DEFAULT_PROFILE.score}
    assert found["east"].total == sum(normalised for _, normalised in found["east"].scores.values())
    assert found["old"].was_selected
    assert not found["old"].is_selected
    assert explanation["division"]["steps"]


def test_a_failed_decision_explains_who_failed() -> None:
    decision = decide(engine_with(p=plugin(filter=lambda *_: error("lost"))), Profile(filter=refs("p")))
    assert json.loads(to_json(decision))["failed"] == {"plugin": "p", "reasons": ["lost"]}
