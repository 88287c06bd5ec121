"""Pods: binding, eviction under budgets, graceful deletion; and scales."""

import pytest
from tests.conformance.apiserver.objects import a_deployment, a_pod, a_spec
from tests.support.rest import APPLY, JSON_PATCH, STRATEGIC, Api, Object, refused

BUDGET: Object = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}}
READY: Object = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def evict(api: Api, **options: object) -> Object:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": options}
    return api.create("pods", eviction, name="p", subresource="eviction")


def test_a_pod_on_a_node_is_given_time(api: Api) -> None:
    api.create("pods", a_pod(nodeName="no-such-node"))
    marked = api.delete("pods", "p", {"gracePeriodSeconds": 60})["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 60
    shorter = api.delete("pods", "p", {"gracePeriodSeconds": 40})["metadata"]
    assert (shorter["deletionGracePeriodSeconds"], shorter["deletionTimestamp"] < marked["deletionTimestamp"]) == (
        40,
        True,
    )
    longer = api.delete("pods", "p", {"gracePeriodSeconds": 90})["metadata"]
    assert longer["deletionGracePeriodSeconds"] == 40
    api.delete("pods", "p", {"gracePeriodSeconds": 0, "dryRun": ["All"]})
    assert api.exists("pods", "p")
    api.delete("pods", "p", {"gracePeriodSeconds": 0})
    assert not api.exists("pods", "p")


def test_a_pod_is_bound_once(api: Api) -> None:
    api.create("pods", a_pod())
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"},
    }
    api.create("pods", binding, name="p", subresource="binding")
    pod = api.get("pods", "p")
    assert pod["spec"]["nodeName"] == "n"
    assert [found["type"] for found in pod["status"]["conditions"]] == ["PodScheduled"]
    with refused(409, "Conflict", 'pod p is already assigned to node "n"'):
        api.create("pods", binding, name="p", subresource="binding")
    api.delete("pods", "p", {"gracePeriodSeconds": 0})


def test_an_eviction_needs_the_budgets_leave(api: Api) -> None:
    api.create("pods", a_pod(nodeName="no-such-node"))
    api.patch("pods", "p", {"status": READY}, "status")
    api.create("poddisruptionbudgets", BUDGET)
    counted = {"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1, "expectedPods": 1}
    api.patch("poddisruptionbudgets", "b", {"status": counted}, "status")
    with refused(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.") as caught:
        evict(api)
    assert [cause["reason"] for cause in caught.value.causes] == ["DisruptionBudget"]
    api.delete("poddisruptionbudgets", "b")
    evict(api, gracePeriodSeconds=50, dryRun=["All"])
    assert "deletionTimestamp" not in api.get("pods", "p")["metadata"]
    evict(api, gracePeriodSeconds=50)
    assert api.get("pods", "p")["metadata"]["deletionGracePeriodSeconds"] == 50
    api.delete("pods", "p", {"gracePeriodSeconds": 0})


def test_a_pod_that_waits_for_a_node_is_in_no_budget(api: Api) -> None:
    api.create("pods", a_pod())
    api.create("poddisruptionbudgets", BUDGET)
    evict(api)
    assert not api.exists("pods", "p")


@pytest.mark.parametrize("plural", ["deployments", "replicasets", "statefulsets"])
def test_a_scale_is_a_view_of_its_workload(api: Api, plural: str) -> None:
    spec = a_deployment()["spec"] if plural == "deployments" else a_spec(plural)
    labels = spec["template"]["metadata"]["labels"]
    made = api.create(plural, {"metadata": {"name": "s"}, "spec": {**spec, "replicas": 0}})
    scale = api.get(plural, "s", "scale")
    assert (scale["kind"], scale["apiVersion"], scale["metadata"]["uid"]) == (
        "Scale",
        "autoscaling/v1",
        made["metadata"]["uid"],
    )
    assert scale["status"] == {"replicas": 0, "selector": ",".join(f"{key}={value}" for key, value in labels.items())}
    api.patch(plural, "s", {"spec": {"replicas": 0}}, "scale", type_=STRATEGIC)
    assert api.get(plural, "s")["metadata"]["generation"] == 1
    changed = api.patch(plural, "s", {"metadata": {"annotations": {"a": "b"}}, "spec": {"minReadySeconds": 5}})
    assert changed["metadata"]["generation"] == 2


def test_a_scale_is_patched_in_every_way(api: Api) -> None:
    api.create("deployments", a_deployment(replicas=0))
    replace = [{"op": "replace", "path": "/spec/replicas", "value": 3}]
    assert api.patch("deployments", "web", replace, "scale", type_=JSON_PATCH)["spec"] == {"replicas": 3}
    assert api.patch("deployments", "web", {"spec": {"replicas": 2}}, "scale", dryRun="All")["spec"] == {"replicas": 2}
    assert api.get("deployments", "web")["spec"]["replicas"] == 3
    wanted = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 0}}
    applied = api.patch("deployments", "web", wanted, "scale", type_=APPLY, fieldManager="hpa", force=True)
    assert applied["spec"].get("replicas", 0) == 0
    with refused(422, "Invalid", "must be greater than or equal to 0"):
        api.patch("deployments", "web", {"spec": {"replicas": -1}}, "scale")


def test_what_is_no_scale_is_refused_as_one(api: Api) -> None:
    made = api.create("deployments", a_deployment(replicas=0))
    with refused(400, "BadRequest", "cannot be handled as a Scale"):
        api.update("deployments", {**made, "spec": {**made["spec"], "replicas": 4}}, "scale")
    scale = api.get("deployments", "web", "scale")
    elsewhere = {**scale, "metadata": {"name": "web", "namespace": "kube-system"}}
    with refused(400, "BadRequest", "the namespace of the provided object does not match"):
        api.update("deployments", elsewhere, "scale")
    stale = {**scale, "metadata": {**scale["metadata"], "resourceVersion": "1"}, "spec": {"replicas": 1}}
    with refused(409, "Conflict"):
        api.update("deployments", stale, "scale")


def test_a_status_changes_nothing_else_and_nothing_else_changes_a_status(api: Api) -> None:
    api.create("deployments", a_deployment(replicas=0))
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 9}, "status": {"observedGeneration": 1}}
    reported = api.patch("deployments", "web", patch, "status")
    assert (reported["spec"]["replicas"], reported["metadata"]["labels"]) == (0, {"app": "web"})
    assert reported["status"]["observedGeneration"] == 1
    changed = api.patch("deployments", "web", {**patch, "status": {"observedGeneration": 7}})
    assert (changed["spec"]["replicas"], changed["status"]["observedGeneration"] < 7) == (9, True)


def test_a_pod_counts_the_changes_of_its_spec(api: Api) -> None:
    assert api.create("pods", a_pod())["metadata"]["generation"] == 1
    assert api.patch("pods", "p", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert api.patch("pods", "p", {"spec": {"activeDeadlineSeconds": 900}})["metadata"]["generation"] == 2
