"""Settings with a closed set of values; other values are refused by name."""

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.planning.clusters.health import detection_s_max
from federation.settings import Settings, from_environment

HERE = {"directory": Path()}


def settings(**environ: str) -> Settings:
    return from_environment(HERE, {f"FEDERATION_{name.upper()}": value for name, value in environ.items()})


def test_scheduling_requests_can_be_limited_to_gpus() -> None:
    assert settings().units.counts_cpu_and_memory
    assert settings(scheduling_requests="all").units.counts_cpu_and_memory
    assert not settings(scheduling_requests="gpus").units.counts_cpu_and_memory


def test_triggers_are_short_by_default() -> None:
    assert not settings().writes_kubeadmiral_triggers
    assert settings(scheduling_triggers="kubeadmiral").writes_kubeadmiral_triggers


def test_annotations_override_policies_by_default() -> None:
    assert settings().allows_scheduling_annotations
    assert not settings(scheduling_annotations="disabled").allows_scheduling_annotations


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("scheduling_requests", lambda chosen: chosen.units),
        ("scheduling_triggers", lambda chosen: chosen.writes_kubeadmiral_triggers),
        ("scheduling_annotations", lambda chosen: chosen.allows_scheduling_annotations),
    ],
)
def test_an_unknown_value_is_refused_with_the_known_ones(name: str, read: object) -> None:
    assert callable(read)
    with pytest.raises(ConfigurationError, match=f"^{name.replace('_', '-')}: 'some' is neither "):
        read(settings(**{name: "some"}))


def test_the_values_of_an_object_are_limited() -> None:
    assert settings().object_values == 100_000
    assert settings(object_values_max="20000").object_values == 20_000
    with pytest.raises(ConfigurationError, match=r"^object-values-max: 0 is below 10000"):
        _ = settings(object_values_max="0").object_values


@pytest.mark.parametrize(
    ("variable", "value", "look"),
    [
        ("health_period_s", "0", attrgetter("cadence")),
        ("health_timeout_s", "-1", attrgetter("cadence")),
        ("health_failures", "0", attrgetter("damping")),
        ("health_recovery_s", "-1", attrgetter("damping")),
        ("failover_namespace_share", "1.5", attrgetter("failover")),
        ("failover_halt_share", "-0.5", attrgetter("failover")),
        ("failover_replicas_per_minute", "-1", attrgetter("failover")),
        ("failover_settle_s", "-1", attrgetter("failover")),
        ("failback_interval_s", "-1", attrgetter("failover")),
        ("failover_holdout_s", "-1", attrgetter("holdout")),
        ("failover_holdout_s_max", "0", attrgetter("holdout")),
        ("failover_toleration_s", "-1", attrgetter("units")),
    ],
)
def test_health_and_failover_options_out_of_range_are_named(
    variable: str, value: str, look: Callable[[Settings], object]
) -> None:
    with pytest.raises(ConfigurationError, match=variable.replace("_", "-")):
        look(settings(**{variable: value}))


def test_the_default_health_options_detect_a_loss_within_ten_seconds() -> None:
    assert detection_s_max(settings().cadence, settings().damping) <= 10.0
    assert settings().units.toleration_s == 300


def test_a_role_limits_what_a_process_does() -> None:
    assert settings().check_role(is_shared=False)
    assert not settings(role="api").check_role(is_shared=True)
    assert settings(role="controllers").check_role(is_shared=True)
    assert [settings(role=role).is_published for role in ("all", "api", "controllers")] == [True, True, False]
    with pytest.raises(ConfigurationError, match="role: 'worker' is none of all, api, controllers"):
        settings(role="worker").check_role(is_shared=True)
    with pytest.raises(ConfigurationError, match=r"role: api is for one of several processes.*FEDERATION_STORE_URL"):
        settings(role="api").check_role(is_shared=False)
