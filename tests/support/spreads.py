"""Builders for tests of WorkloadSpreads."""

from collections.abc import Generator, Iterable, Mapping
from typing import Any

CLONE_SET = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web", "controller": True}


def with_controller(pod: Mapping[str, Any], owner: Mapping[str, Any] = CLONE_SET) -> dict[str, Any]:
    """Return the pod with a controller, its own when it has one."""
    metadata = pod.get("metadata") or {}
    return {**pod, "metadata": {"ownerReferences": [dict(owner)], **metadata}}


def drive(search: Generator[Any, Any, Any], owners: Iterable[Any] = ()) -> Any:
    """Return the result of a search that is given the next of `owners` at each read."""
    rest = iter(owners)
    try:
        next(search)
        while True:
            search.send(next(rest, None))
    except StopIteration as done:
        return done.value
