"""Replicas that a member owns, in what the federation applies."""

from federation.planning.rendering.retention import retain_replicas_for_apply

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
