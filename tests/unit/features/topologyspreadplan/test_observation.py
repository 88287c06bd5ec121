"""What a plan observes: the shards that its selector matches."""

from typing import Any

import pytest

from federation.features.topologyspreadplan.rules.observation import ShardSet, shards_of

SPEC = {"selector": {"matchLabels": {"app": "db", "tier": "data"}}, "shardLabel": "shard"}


def a_shard(name: str = "db-0", **labels: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "db", "tier": "data", "shard": name, **labels}}, "spec": {"a": 1}}
    return {"metadata": {"name": name, "uid": "u"}, "spec": {"replicas": 3, "template": template}}


def test_a_shard_has_its_label_its_replicas_and_its_pod() -> None:
    (shard,) = shards_of(SPEC, [a_shard()])
    assert shard == ShardSet("db-0", {"shard": "db-0"}, 3, {"a": 1}, "u")


@pytest.mark.parametrize(
    ("spec", "shard"),
    [
        (SPEC, a_shard(tier="other")),
        (SPEC, a_shard(app="other")),
        ({**SPEC, "selector": {}}, a_shard()),
        ({**SPEC, "shardLabel": "part"}, a_shard()),
        (SPEC, a_shard() | {"metadata": {"name": "db-0", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        (SPEC, a_shard() | {"spec": None}),
    ],
)
def test_other_stateful_sets_are_no_shards(spec: dict[str, Any], shard: dict[str, Any]) -> None:
    assert shards_of(spec, [shard]) == []


@pytest.mark.parametrize(("replicas", "expected"), [(None, 1), (0, 0), (2, 2)])
def test_a_stateful_set_without_replicas_has_one(replicas: int | None, expected: int) -> None:
    shard = a_shard()
    shard["spec"]["replicas"] = replicas
    assert [each.replicas for each in shards_of(SPEC, [shard])] == [expected]


def test_shards_are_in_the_order_of_their_numbers() -> None:
    names = [f"db-{number}" for number in (10, 2, 1)]
    assert [each.name for each in shards_of(SPEC, map(a_shard, names))] == ["db-1", "db-2", "db-10"]
