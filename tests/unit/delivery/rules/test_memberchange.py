"""Which changes of a member object sync looks at."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment

from federation.apimachinery.resources import DEPLOYMENTS, JOBS, Object
from federation.delivery.rules.memberchange import has_ended, matters


def web(generation: int = 1, *, status: Object | None = None, **metadata: Any) -> Object:
    deployment = a_deployment("web")
    deployment["metadata"] |= {"uid": "u", "generation": generation, **metadata}
    return {**deployment, "status": status or {}}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (web(status={"readyReplicas": 3}), False),
        (web(resourceVersion="9"), False),
        (web(annotations={"deployment.kubernetes.io/revision": "2"}), False),
        (web(2), True),
        (web(labels={}), True),
        (web(uid="v"), True),
        (web(deletionTimestamp="2026-01-01T00:00:00Z"), True),
    ],
    ids=["status", "revision", "revision of the rollout", "spec", "lost label", "created again", "being deleted"],
)
def test_a_status_changes_nothing_for_sync_and_what_may_have_been_changed_by_somebody_does(
    new: Object, expected: bool
) -> None:
    assert matters(DEPLOYMENTS, web(), new) is expected


def test_a_new_object_matters() -> None:
    assert matters(DEPLOYMENTS, None, web())


def test_the_end_of_an_object_that_finishes_matters_once() -> None:
    running: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "uid": "u", "generation": 1}}
    ended = {**running, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert matters(JOBS, running, ended)
    assert has_ended(JOBS, running, ended)
    assert not matters(JOBS, ended, ended)
    assert not has_ended(JOBS, running, running)
