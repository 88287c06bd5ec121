"""Profiles and the plugin registry."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from federation.apimachinery.errors import PluginError
from federation.scheduling.framework.profile import (
    BINPACK_PLUGIN,
    DEFAULT_PROFILE,
    PluginRef,
    Profile,
    apply_profile,
    refs,
    with_strategy,
)
from federation.scheduling.framework.registry import GROUP, PluginRegistry, factory_of, load_plugins
from federation.scheduling.framework.runner import Framework
from federation.scheduling.framework.types import ReplicasStrategy
from federation.scheduling.profiles import Profiles


class Plain:
    def filter(self) -> None: ...


class WithArguments:
    def __init__(self, price: int) -> None:
        self.price = price

    @classmethod
    def from_args(cls, args: dict[str, Any]) -> Any:
        return cls(args["price"])


def test_weights_and_arguments_of_a_profile_work() -> None:
    source = {
        "metadata": {"name": "costly"},
        "spec": {
            "plugins": {
                "score": {"enabled": [{"name": "a", "weight": 3}, {"name": "b", "wait": 2}, {"name": "c", "weight": 0}]}
            },
            "pluginConfig": [{"name": "a", "args": {"price": 1}}, {"name": "b"}],
        },
    }
    profile = apply_profile(Profile(), source)
    assert profile.name == "costly"
    assert profile.score == (PluginRef("a", 3), PluginRef("b", 2), PluginRef("c", 0))
    assert profile.arguments == {"a": {"price": 1}, "b": {}}


def test_binpack_replaces_the_replicas_plugin_only() -> None:
    packed = with_strategy(DEFAULT_PROFILE, is_binpack=True)
    assert packed.replicas == refs(BINPACK_PLUGIN)
    assert packed.filter == DEFAULT_PROFILE.filter
    assert with_strategy(DEFAULT_PROFILE, is_binpack=False) is DEFAULT_PROFILE


def test_the_default_profile_works_with_the_installed_plugins() -> None:
    plugins = load_plugins()
    for strategy in (False, True):
        Framework(with_strategy(DEFAULT_PROFILE, is_binpack=strategy), plugins)
    for name in plugins.names:
        assert name == plugins.make(name, {}).NAME


def test_a_plugin_is_created_once_for_all_its_extension_points() -> None:
    made: list[int] = []

    class Both(Plain):
        def score(self) -> None: ...

    def make(_: Any) -> Any:
        made.append(1)
        return Both()

    Framework(Profile(filter=refs("p"), score=refs("p")), PluginRegistry({"p": make}))
    assert len(made) == 1


def test_arguments_reach_the_plugin() -> None:
    plugins = PluginRegistry({"w": factory_of(WithArguments), "p": factory_of(Plain)})
    assert plugins.make("w", {"price": 3}).price == 3
    with pytest.raises(PluginError, match="plugin 'p' rejects its arguments: it takes none, got price"):
        plugins.make("p", {"price": 3})


def test_an_unknown_plugin_is_named_with_the_known_ones() -> None:
    plugins = PluginRegistry({"a": factory_of(Plain)}).with_plugin("b", factory_of(Plain))
    assert plugins.names == ["a", "b"]
    with pytest.raises(PluginError, match=r"plugin 'c' is not registered; known: a, b"):
        plugins.make("c", {})


def test_a_broken_or_doubled_installation_is_refused() -> None:
    good = EntryPoint("a", "federation_plugins.max_cluster:MaxCluster", GROUP)
    assert load_plugins([good]).names == ["a"]
    with pytest.raises(PluginError, match="installed twice"):
        load_plugins([good, EntryPoint("a", "federation_plugins.priority_sort:PrioritySort", GROUP)])
    for value in ("federation_plugins.absent:A", "federation_plugins.max_cluster:Absent"):
        with pytest.raises(PluginError, match=f"cannot be loaded from {value}"):
            load_plugins([EntryPoint("a", value, GROUP)])


def test_objects_of_queues_prefer_the_fullest_cluster_unless_the_profile_has_removed_the_opposite() -> None:
    profiles = Profiles()
    queued = profiles.get("", ReplicasStrategy.SPREAD, is_queued=True)
    assert queued is not None
    assert [ref.name for ref in queued.score] == [
        "TaintToleration",
        "ClusterResourcesBalancedAllocation",
        "ClusterResourcesMostAllocated",
        "ClusterAffinity",
    ]
    assert queued is profiles.get("", ReplicasStrategy.SPREAD, is_queued=True)
    own = {"disabled": [{"name": "*"}], "enabled": [{"name": "ClusterAffinity"}]}
    profiles.put({"metadata": {"name": "mine"}, "spec": {"plugins": {"score": own}}})
    mine = profiles.get("mine", ReplicasStrategy.SPREAD, is_queued=True)
    assert mine is profiles.get("mine", ReplicasStrategy.SPREAD)
    profiles.remove("mine")
    assert profiles.get("mine", ReplicasStrategy.SPREAD, is_queued=True) is None


def test_an_unchanged_profile_is_the_same_object() -> None:
    profiles = Profiles()
    assert profiles.get("", ReplicasStrategy.SPREAD) is DEFAULT_PROFILE
    assert profiles.hash("") == ""
    assert profiles.get("mine", ReplicasStrategy.SPREAD) is None
    profiles.put({"metadata": {"name": "mine"}, "spec": {}})
    first = profiles.get("mine", ReplicasStrategy.BINPACK)
    assert first is profiles.get("mine", ReplicasStrategy.BINPACK)
    assert first is not None
    assert first.replicas == refs(BINPACK_PLUGIN)
    old = profiles.hash("mine")
    profiles.put({"metadata": {"name": "mine"}, "spec": {"plugins": {"filter": {"disabled": [{"name": "*"}]}}}})
    assert profiles.hash("mine") != old
    profiles.remove("mine")
    assert profiles.get("mine", ReplicasStrategy.SPREAD) is None
    assert profiles.hash("mine") == ""


def test_a_plugin_without_the_point_cannot_be_enabled_for_it() -> None:
    with pytest.raises(PluginError, match=r"plugin 'p' cannot be enabled for score: it has no score\(\)"):
        Framework(Profile(score=refs("p")), PluginRegistry({"p": factory_of(Plain)}))


def test_a_weight_with_which_scores_do_not_fit_64_bits_is_refused() -> None:
    registry = PluginRegistry({"p": factory_of(Plain)})
    with pytest.raises(PluginError, match="plugin 'p': weight 2147483648 is more than 2147483647"):
        Framework(Profile(score=(PluginRef("p", 2**31),)), registry)


def test_arguments_that_are_no_object_are_refused() -> None:
    with pytest.raises(PluginError, match="pluginConfig of 'p': args must be an object"):
        Framework(Profile(filter=refs("p"), arguments={"p": [1]}), PluginRegistry({"p": factory_of(Plain)}))
