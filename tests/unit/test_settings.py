"""Settings that are words: what they mean, and that others are refused by name."""

from pathlib import Path

import pytest

from federation.base.errors import ConfigurationError
from federation.settings import Settings, from_environment

HERE = {"directory": Path()}


def settings(**environ: str) -> Settings:
    return from_environment(HERE, {f"FEDERATION_{name.upper()}": value for name, value in environ.items()})


def test_as_in_kubeadmiral_only_gpus_count_when_told() -> None:
    assert settings().units.counts_cpu_and_memory
    assert settings(scheduling_requests="all").units.counts_cpu_and_memory
    assert not settings(scheduling_requests="gpus").units.counts_cpu_and_memory


def test_triggers_are_short_unless_told() -> None:
    assert not settings().writes_kubeadmiral_triggers
    assert settings(scheduling_triggers="kubeadmiral").writes_kubeadmiral_triggers


def test_annotations_override_policies_unless_told() -> None:
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
def test_another_word_is_refused_with_those_that_are_known(name: str, read: object) -> None:
    assert callable(read)
    with pytest.raises(ConfigurationError, match=f"^{name.replace('_', '-')}: 'some' is neither "):
        read(settings(**{name: "some"}))
