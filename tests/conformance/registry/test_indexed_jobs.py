"""Limits of Indexed Jobs and names of their pods; names of StatefulSets."""

from typing import Any

import pytest
from tests.conformance.registry.conftest import Api, Object

from federation.apimachinery.errors import Invalid

POD = {"containers": [{"name": "a", "image": "i"}]}
PER_INDEX = {"completions": 100_001, "parallelism": 1, "backoffLimitPerIndex": 1}


def a_job(name: str = "j", **spec: Any) -> Object:
    template = {"spec": {**POD, "restartPolicy": "Never"}}
    spec = {"completionMode": "Indexed", "completions": 3, "template": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"parallelism": 100_001}, "spec.parallelism: .* less than or equal to 100000 when completion mode is Indexed"),
        ({"maxFailedIndexes": 4, "backoffLimitPerIndex": 1}, "spec.maxFailedIndexes: .* equal to completions"),
        (PER_INDEX, "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000"),
        (PER_INDEX | {"maxFailedIndexes": 10_001}, "spec.maxFailedIndexes: .* less than or equal to 10000 when"),
        (PER_INDEX | {"maxFailedIndexes": 100_001}, "spec.maxFailedIndexes: .* less than or equal to 100000,"),
        (PER_INDEX | {"maxFailedIndexes": 1, "parallelism": 10_001}, "spec.parallelism: .* equal to 10000 when"),
        ({"completions": None, "parallelism": 1}, "spec.completions: Required value: when completion mode is Indexed"),
        ({"completionMode": "NonIndexed", "backoffLimitPerIndex": 1}, "requires indexed completion mode"),
    ],
)
async def test_an_indexed_job_has_limits(api: Api, spec: Object, text: str) -> None:
    with pytest.raises(Invalid, match=text):
        await api.create("jobs", a_job(**spec))


@pytest.mark.parametrize(
    "spec",
    [
        {"parallelism": 100_000},
        {"completions": 100_001, "parallelism": 1},
        PER_INDEX | {"parallelism": 10_000, "maxFailedIndexes": 10_000},
        {"completionMode": "NonIndexed", "parallelism": 200_000},
    ],
)
async def test_a_job_within_its_limits_is_accepted(api: Api, spec: Object) -> None:
    assert await api.create("jobs", a_job(**spec))


@pytest.mark.parametrize(("length", "completions"), [(61, 10), (60, 100), (61, 11), (62, 3)])
async def test_names_of_indexed_pods_are_labels(api: Api, length: int, completions: int) -> None:
    job = a_job("a" * length, completions=completions)
    if length + len(f"-{completions - 1}") <= 63:
        assert await api.create("jobs", job)
        return
    with pytest.raises(Invalid, match="will not able to create pod with invalid DNS label"):
        await api.create("jobs", job)


@pytest.mark.parametrize(("name", "text"), [("a.b", "must not contain dots"), ("a" * 64, "no more than 63")])
async def test_the_name_of_a_stateful_set_is_a_label(api: Api, name: str, text: str) -> None:
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": POD}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    with pytest.raises(Invalid, match=text):
        await api.create(
            "statefulsets", {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}
        )
