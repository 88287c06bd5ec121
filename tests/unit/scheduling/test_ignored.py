"""Failed plugins that a decision ignores: its result and its explanation."""

import json
from typing import Any

import pytest

from federation.scheduling.availability import availability
from federation.scheduling.engine import Engine, Outcome
from federation.scheduling.explain import to_json
from federation.scheduling.explanations import rows
from federation.scheduling.framework.cycle import FilterResult
from federation.scheduling.framework.profile import DEFAULT_PROFILE, PluginRef, Profile, apply_profile, refs
from federation.scheduling.framework.profile import with_strategy as with_strategy_of
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit, a_unit
from federation.scheduling.framework.types import Status, error, unschedulable
from federation.scheduling.snapshot import Snapshot

CLUSTERS = tuple(a_cluster(name).offering(cpu="10", memory="10Gi").built() for name in ("east", "north", "west"))
ALL = Snapshot(1, CLUSTERS)


class Broken:
    """A plugin that fails at every extension point, ignorable or not."""

    def __init__(self, *, is_ignorable: bool) -> None:
        self.is_ignorable = is_ignorable

    def filter(self, unit: Any, cluster: Any, state: Any) -> Any:
        return error("down") if cluster.name == "west" else unschedulable("no")

    def score(self, unit: Any, cluster: Any, state: Any) -> Any:
        return error("down")

    def select(self, unit: Any, scored: Any, state: Any) -> Any:
        return [scored[0], scored[0]]

    def replicas(self, unit: Any, clusters: Any, state: Any) -> Any:
        return error("down")


def decide(*, is_ignorable: bool, **points: Any) -> Any:
    plugins = load_plugins().with_plugin("broken", lambda _: Broken(is_ignorable=is_ignorable))
    changes = {point: {"enabled": [{"name": "broken"}]} for point in points}
    profile = apply_profile(DEFAULT_PROFILE, {"spec": {"plugins": changes}})
    return Engine(plugins).decide(a_divided_unit(6), ALL, profile, now=NOW)


@pytest.mark.parametrize("point", ["filter", "score", "select", "replicas"])
def test_a_decision_goes_on_without_a_plugin_that_may_be_ignored_and_says_so(point: str) -> None:
    decision = decide(is_ignorable=True, **{point: True})
    assert set(decision.placements) == {"east", "north", "west"}
    assert sum(decision.placements.values()) == 6
    ((where, who, reasons),) = ((entry.point, entry.plugin, entry.reasons) for entry in decision.ignored)
    assert (where, who) == (point, "broken")
    assert decision.reason == f"3/3 clusters are available; broken was ignored in {point} because {reasons[0]}"
    explained = json.loads(to_json(decision))
    assert explained["ignored"] == [{"plugin": "broken", "point": point, "reasons": list(reasons)}]


@pytest.mark.parametrize("point", ["filter", "score", "select", "replicas"])
def test_a_plugin_that_may_not_be_ignored_fails_the_decision(point: str) -> None:
    decision = decide(is_ignorable=False, **{point: True})
    assert decision.outcome is Outcome.PLUGIN_FAILED
    assert decision.reason.startswith(f"broken failed in {point}: ")
    assert decision.placements == {}


def test_without_any_replicas_plugin_left_the_decision_fails() -> None:
    engine = Engine(PluginRegistry({"broken": lambda _: Broken(is_ignorable=True)}))
    decision = engine.decide(a_divided_unit(2), ALL, Profile(replicas=refs("broken")), now=NOW)
    assert decision.outcome is Outcome.PLUGIN_FAILED
    assert "has no replicas plugin; broken was ignored in replicas because down" in decision.reason


def test_a_profile_puts_replicas_plugins_in_front_of_the_strategys_own() -> None:
    def replicas(*, is_binpack: bool = False, **changes: Any) -> tuple[PluginRef, ...]:
        profile = apply_profile(DEFAULT_PROFILE, {"spec": {"plugins": {"replicas": changes}}})
        return with_strategy_of(profile, is_binpack=is_binpack).replicas

    mine = [{"name": "mine"}]
    assert replicas(enabled=mine) == refs("mine", "ClusterCapacityWeight")
    assert replicas(enabled=mine, is_binpack=True) == refs("mine", "PreferenceBinPack")
    assert replicas(enabled=mine, disabled=[{"name": "*"}]) == refs("mine")
    both = [{"name": "PreferenceBinPack"}, {"name": "ClusterCapacityWeight"}]
    assert replicas(enabled=both, is_binpack=True) == refs("PreferenceBinPack")
    assert replicas(enabled=both) == refs("PreferenceBinPack", "ClusterCapacityWeight")


def test_remarks_of_plugins_are_in_the_explanation() -> None:
    class Talker:
        def score(self, unit: Any, cluster: Any, state: Any) -> int:
            state.remark("talker", cluster.name, f"{cluster.name} is fine")
            return 7

    engine = Engine(PluginRegistry({"talker": lambda _: Talker()}))
    decision = engine.decide(a_unit(), ALL, Profile(score=refs("talker")), now=NOW)
    found = {row.name: row for row in rows(json.loads(to_json(decision)))}
    assert found["east"].remarks == {"talker": ("east is fine",)}


def test_one_line_names_the_ten_first_of_many_different_reasons() -> None:
    clusters = tuple(a_cluster(f"c{number:02}").built() for number in range(30))
    rejected: dict[str, Status] = {c.name: unschedulable(f"{c.name} is too dear") for c in clusters}
    text = availability(Snapshot(1, clusters), FilterResult((), rejected))
    assert text.startswith("0/30 clusters are available: 1 c00 is too dear, ")
    assert text.endswith("1 c09 is too dear, and 20 other reasons")
