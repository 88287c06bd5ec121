"""What the federation applies over an existing object: replicas and other fields that its member owns."""

from typing import Any

import pytest

from federation.planning.rendering.retention import (
    RetentionError,
    retain_for_apply,
    retain_replicas_for_apply,
)

PATH = ("spec", "replicas")
DESIRED = {"kind": "Deployment", "spec": {"replicas": 3, "paused": False}}
SCALED = [{"manager": "kube-controller-manager", "subresource": "scale"}]


def test_the_live_number_is_sent_until_a_scaler_owns_it() -> None:
    live = {"metadata": {"managedFields": [{"manager": "federation"}]}, "spec": {"replicas": 7}}
    assert retain_replicas_for_apply(DESIRED, live, PATH)["spec"] == {"replicas": 7, "paused": False}
    live["metadata"]["managedFields"] += SCALED
    assert retain_replicas_for_apply(DESIRED, live, PATH)["spec"] == {"paused": False}
    assert DESIRED["spec"] == {"replicas": 3, "paused": False}


def test_a_template_without_the_field_stays_as_it_is() -> None:
    live = {"metadata": {"managedFields": SCALED}, "spec": {"replicas": 7}}
    assert retain_replicas_for_apply({"kind": "Deployment"}, live, PATH) == {"kind": "Deployment"}
    assert retain_replicas_for_apply({"spec": "odd"}, live, PATH) == {"spec": "odd"}
    assert retain_replicas_for_apply(DESIRED, live, ()) == DESIRED


@pytest.mark.parametrize(
    ("desired", "live", "expected"),
    [
        ({"spec": {"a": 1}}, {"spec": {"clusterIP": "10.0.0.1"}}, {"a": 1}),
        ({"spec": {"clusterIP": "x"}}, {"spec": {"clusterIP": "10.0.0.1"}}, {"clusterIP": "10.0.0.1"}),
        ({"spec": {"clusterIP": "None"}}, {"spec": {"clusterIP": "10.0.0.1"}}, {"clusterIP": "None"}),
        ({"spec": {"clusterIPs": ["x"]}}, {"spec": {"clusterIPs": ["y"]}}, {"clusterIPs": ["y"]}),
        ({"spec": {"healthCheckNodePort": 1}}, {"spec": {"healthCheckNodePort": 2}}, {"healthCheckNodePort": 2}),
        ({"spec": {"healthCheckNodePort": 1}}, {"spec": {}}, {"healthCheckNodePort": 1}),
        (
            {"spec": {"ports": [{"port": 80, "nodePort": 1}, {"port": 81}, {"port": 80, "protocol": "UDP"}]}},
            {"spec": {"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30080}, {"port": 81, "nodePort": 30081}]}},
            {"ports": [{"port": 80, "nodePort": 30080}, {"port": 81, "nodePort": 30081}, {"port": 80, "protocol": "UDP"}]},
        ),
        ({"spec": {"ports": [{"port": 80}]}}, {"spec": {"ports": [{"port": 80, "nodePort": 3}]}}, {"ports": [{"port": 80}]}),
    ],
)  # fmt: skip
def test_what_a_member_allocates_for_a_service_stays(
    desired: dict[str, Any], live: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert retain_for_apply({"kind": "Service", **desired}, live)["spec"] == expected


def test_node_ports_that_a_user_wrote_win() -> None:
    desired = {"kind": "Service", "spec": {"ports": [{"port": 80, "nodePort": 1}]}}
    live = {"spec": {"ports": [{"port": 80, "nodePort": 2}]}}
    assert retain_for_apply(desired, live, has_written_ports=True)["spec"]["ports"] == [{"port": 80, "nodePort": 1}]


@pytest.mark.parametrize(("field", "value"), [("clusterIP", 7), ("clusterIPs", "x"), ("healthCheckNodePort", True)])
def test_a_malformed_service_of_a_member_is_refused(field: str, value: Any) -> None:
    with pytest.raises(RetentionError, match=field):
        retain_for_apply({"kind": "Service", "spec": {}}, {"spec": {field: value}})


def test_an_object_that_has_finished_takes_metadata_and_keeps_the_rest() -> None:
    live = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x", "uid": "u1", "labels": {"old": "1"}},
        "spec": {"template": {"spec": {"image": "job:1"}}, "suspend": False},
        "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    }
    desired = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x", "labels": {"new": "1"}},
        "spec": {"template": {"spec": {"image": "job:2"}}},
    }
    kept = retain_for_apply(desired, live)
    assert kept == {**desired, "spec": live["spec"]}
    assert retain_for_apply(desired, {**live, "status": {}}) == desired
