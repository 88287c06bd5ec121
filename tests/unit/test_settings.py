"""Settings with a closed set of values; other values are refused by name."""

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.componentoptions import registration_options
from federation.planning.clusters.health import detection_s_max
from federation.settings import Settings, from_environment

HERE = {"directory": Path()}


def settings(**environ: str) -> Settings:
    return from_environment(HERE, {f"FEDERATION_{name.upper()}": value for name, value in environ.items()})


def test_scheduling_requests_can_be_limited_to_gpus() -> None:
    assert settings().units.counts_cpu_and_memory
    assert settings(scheduling_requests="all").units.counts_cpu_and_memory
    assert not settings(scheduling_requests="gpus").units.counts_cpu_and_memory


@pytest.mark.parametrize("name", ["cluster_rates_url", "cluster_rates_interval_s"])
def test_a_source_of_rates_that_cannot_work_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name.replace("_", "-")):
        _ = settings(**{name: "1"}).cluster_rates


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


def test_certificates_of_agents_live_long_enough_to_be_renewed() -> None:
    assert registration_options(settings()).certificate_lifetime_s == 30 * 86400
    with pytest.raises(ConfigurationError, match=r"^agent-certificate-lifetime-s: 59 is below 60"):
        registration_options(settings(agent_certificate_lifetime_s="59"))


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"host_kubeconfig": "a", "in_cluster": True}, "host-kubeconfig and in-cluster name two hosts"),
        ({"host_url": "https://10.0.0.5"}, "host-url is set without host-kubeconfig"),
        ({"in_cluster": True, "oidc_issuer_url": "https://issuer"}, "oidc-issuer-url is for the embedded API server"),
        ({"in_cluster": True, "role": "api"}, "role is for the embedded API server"),
        ({"in_cluster": True, "store_bytes_max": 1}, "store-bytes-max is for the embedded API server"),
    ],
)
def test_settings_of_two_kinds_of_hosts_are_refused(given: dict[str, object], message: str) -> None:
    settings = from_environment({"directory": Path("state"), **given}, {})
    with pytest.raises(ConfigurationError, match=message):
        _ = settings.has_existing_host


def test_traces_go_to_our_endpoint_or_to_that_of_opentelemetry() -> None:
    all_variables = {
        "FEDERATION_OTLP_ENDPOINT": "http://ours",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://all",
    }
    for expected in ("http://ours", "http://traces", "http://all", ""):
        assert from_environment(HERE, all_variables).otlp_endpoint == expected
        all_variables = dict(list(all_variables.items())[1:])
    turned_off = {"FEDERATION_OTLP_ENDPOINT": "", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://all"}
    assert not from_environment(HERE, turned_off).otlp_endpoint
