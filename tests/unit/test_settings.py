"""Settings with a closed set of values; other values are refused by name."""

from pathlib import Path

import pytest

from federation.apimachinery.errors import ConfigurationError
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
