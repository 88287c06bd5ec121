"""The status of built-in kinds: its initial value, and the writes that may change it."""

import pytest
from tests.conformance.apiserver.objects import SELECTOR, a_deployment, a_spec
from tests.support.rest import Api, Object, unless_modified

REPORTED: Object = {"replicas": 7, "phase": "Running", "succeeded": 1, "desiredHealthy": 5}


@pytest.mark.parametrize(
    ("plural", "status"),
    [
        ("deployments", {}),
        ("replicasets", {"replicas": 0}),
        ("statefulsets", {"replicas": 0, "availableReplicas": 0}),
        (
            "daemonsets",
            {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0},
        ),
        ("jobs", {}),
        ("cronjobs", {}),
        (
            "poddisruptionbudgets",
            {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
        ),
        ("autoscaling/v2/horizontalpodautoscalers", {"currentMetrics": None, "desiredReplicas": 0}),
        ("pods", {"phase": "Pending", "qosClass": "BestEffort"}),
        ("services", {"loadBalancer": {}}),
        ("ingresses", {"loadBalancer": {}}),
        ("persistentvolumeclaims", {"phase": "Pending"}),
        ("resourcequotas", {}),
    ],
)
def test_a_new_object_has_the_status_of_its_kind_whatever_it_was_sent_with(
    api: Api, plural: str, status: Object
) -> None:
    created = api.create(plural, {"metadata": {"name": "s"}, "spec": a_spec(plural), "status": REPORTED})
    assert created["status"] == status


def test_a_status_that_is_emptied_keeps_what_is_always_there(api: Api) -> None:
    api.create("replicasets", {"metadata": {"name": "s"}, "spec": a_spec("replicasets")}, dryRun="All")
    api.create("poddisruptionbudgets", {"metadata": {"name": "s"}, "spec": {"selector": SELECTOR}})

    def emptied() -> Object:
        budget = api.get("poddisruptionbudgets", "s")
        return api.update("poddisruptionbudgets", {**budget, "status": {}}, "status")

    assert unless_modified(emptied)["status"]["expectedPods"] == 0


def test_the_status_of_a_new_object_has_no_field_manager(api: Api) -> None:
    created = api.create("deployments", {**a_deployment(), "status": {"replicas": 1}}, fieldManager="me")
    (entry,) = created["metadata"]["managedFields"]
    assert "f:status" not in entry["fieldsV1"]
