"""The progress of a workload in one cluster, as `fedctl rollout status` shows it without waves."""

from typing import Any

import pytest
from tests.support.whatif import DEPLOYMENT

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.planning.status.rolloutprogress import Progress, progress_of

TYPES = {type_.resource.kind: type_ for type_ in map(from_config, default_type_configs())}
DONE = {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}


def a_deployment(revision: str = "v1", replicas: int = 3, **status: Any) -> dict[str, Any]:
    metadata = {"annotations": {names.TEMPLATE_REVISION: revision}}
    spec = {"replicas": replicas}
    return {"metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("wanted", "live", "expected"),
    [
        (a_deployment(), a_deployment(**DONE), Progress(3, 3, 3, 3)),
        (a_deployment(), None, Progress(3, 0, 0, 0, "it has no object yet")),
        (None, a_deployment(**DONE), Progress(0, 3, 3, 3, "it is being removed")),
        (a_deployment("v2"), a_deployment(**DONE), Progress(3, 0, 3, 3, "it has an earlier pod template")),
        (
            a_deployment(),
            a_deployment(**{**DONE, "updatedReplicas": 1}),
            Progress(3, 1, 3, 3, "1 of 3 replicas are updated"),
        ),
        (a_deployment(replicas=5), a_deployment(**DONE), Progress(5, 3, 3, 3, "it has 3 of 5 wanted replicas")),
        (a_deployment(), a_deployment(readyReplicas="x"), Progress(3, 0, 0, 0, "0 of 3 replicas are updated")),
    ],
)
def test_pods_and_the_first_thing_that_is_missing(wanted: Any, live: Any, expected: Progress) -> None:
    assert progress_of(DEPLOYMENT, wanted, live) == expected


def test_a_daemon_set_wants_a_pod_per_node() -> None:
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady")
    status = dict.fromkeys((*counts, "numberAvailable"), 2)
    daemon_set: dict[str, Any] = {"metadata": {}, "spec": {}}
    assert progress_of(TYPES["DaemonSet"], daemon_set, {**daemon_set, "status": status}) == Progress(2, 2, 2, 2)


def test_objects_that_do_not_replace_pods_have_no_progress() -> None:
    assert progress_of(TYPES["ConfigMap"], {"metadata": {}}, {"metadata": {}}) is None
