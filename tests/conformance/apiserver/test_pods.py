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


def test_a_binding_names_its_pod(api: Api) -> None:
    api.create("pods", a_pod())
    binding = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n"}}
    api.create("bindings", {**binding, "metadata": {"name": "p"}})
    assert api.get("pods", "p")["spec"]["nodeName"] == "n"
    with refused(404, "NotFound", 'pods "absent" not found'):
        api.create("bindings", {**binding, "metadata": {"name": "absent"}})
    api.delete("pods", "p", {"gracePeriodSeconds": 0})


def test_ephemeral_containers_are_added_and_stay(api: Api) -> None:
    before = api.create("pods", a_pod())
    debugger: Object = {"name": "debugger", "image": "busybox:1", "targetContainerName": "main"}
    body: Object = {
        "metadata": {"labels": {"other": "label"}},
        "spec": {"hostname": "other", "ephemeralContainers": [debugger]},
    }
    pod = api.patch("pods", "p", body, "ephemeralcontainers", type_=STRATEGIC)
    (added,) = pod["spec"]["ephemeralContainers"]
    assert (added["image"], added["imagePullPolicy"], added["terminationMessagePolicy"]) == (
        "busybox:1",
        "IfNotPresent",
        "File",
    )
    assert pod["metadata"].get("labels") == before["metadata"].get("labels")
    assert "hostname" not in pod["spec"]
    assert pod["metadata"]["generation"] == 2
    assert api.get("pods", "p", "ephemeralcontainers")["spec"] == pod["spec"]
    pod["spec"]["ephemeralContainers"][0]["image"] = "other:1"
    with refused(422, "Invalid", 'existing ephemeral containers "debugger" may not be changed'):
        api.update("pods", pod, "ephemeralcontainers")
    with refused(422, "Invalid", 'existing ephemeral containers "debugger" may not be removed'):
        api.patch("pods", "p", {"spec": {"ephemeralContainers": None}}, "ephemeralcontainers")
    unfit = {"spec": {"ephemeralContainers": [{"name": "main", "image": "a:1", "ports": [{"containerPort": 1}]}]}}
    with refused(422, "Invalid", "Duplicate value") as caught:
        api.patch("pods", "p", unfit, "ephemeralcontainers", type_=STRATEGIC)
    assert {cause["field"] for cause in caught.value.causes} == {
        "spec.ephemeralContainers[0].name",
        "spec.ephemeralContainers[0].ports",
    }


def test_a_resize_changes_cpu_and_memory_only(api: Api) -> None:
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}
    api.create("pods", pod)

    def resize(resources: Object, **spec: object) -> Object:
        body = {"spec": {"containers": [{"name": "main", "image": "other:1", "resources": resources}], **spec}}
        return api.patch("pods", "p", body, "resize", type_=STRATEGIC)

    resized = resize({"requests": {"cpu": "0.2"}})
    container = resized["spec"]["containers"][0]
    assert container["resources"]["requests"] == {"cpu": "200m", "memory": "1Gi"}
    assert container["image"] == pod["spec"]["containers"][0]["image"]
    assert resized["metadata"]["generation"] == 2
    with refused(422, "Invalid", "resource requests cannot be removed"):
        resize({"requests": {"cpu": None}})
    with refused(422, "Invalid", "only cpu and memory resources are mutable"):
        resize({"requests": {"ephemeral-storage": "1Gi"}})
    with refused(422, "Invalid", "Pod QOS Class may not change as a result of resizing"):
        resize({"requests": {"cpu": "200m"}, "limits": {"cpu": "200m"}})
    with refused(422, "Invalid", "initContainers may not be added or removed on resize"):
        resize({}, hostname="x", initContainers=[{"name": "new", "image": "a:1"}])
    with refused(422, "Invalid", "pod updates may not change fields other than"):
        changed = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "300m"}}}]}}
        api.patch("pods", "p", changed, type_=STRATEGIC)


def test_a_pod_keeps_its_tolerations_and_containers(api: Api) -> None:
    toleration = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    pod = api.create("pods", a_pod(tolerations=[toleration]))
    pod["spec"]["tolerations"][0]["tolerationSeconds"] = 90
    pod = api.update("pods", pod)
    assert pod["spec"]["tolerations"][0]["tolerationSeconds"] == 90
    changed = [{**found, "key": "b"} for found in pod["spec"]["tolerations"]]
    with refused(422, "Invalid", "existing toleration can not be modified except its tolerationSeconds"):
        api.update("pods", {**pod, "spec": {**pod["spec"], "tolerations": changed}})
    more = [*pod["spec"]["containers"], {"name": "more", "image": "a:1"}]
    with refused(422, "Invalid", "pod updates may not add or remove containers"):
        api.update("pods", {**pod, "spec": {**pod["spec"], "containers": more}})


def test_a_controller_may_narrow_the_nodes_of_a_gated_pod(api: Api) -> None:
    def required(*values: str) -> Object:
        expressions = [{"key": key, "operator": "Exists"} for key in values]
        terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    gated = a_pod(schedulingGates=[{"name": "a.example/wait"}], nodeSelector={"a": "b"}, affinity=required("zone"))
    pod = api.create("pods", gated)
    pod["spec"] |= {"nodeSelector": {"a": "b", "c": "d"}, "affinity": required("zone", "rack")}
    pod = api.update("pods", pod)
    assert pod["spec"]["nodeSelector"] == {"a": "b", "c": "d"}
    with refused(422, "Invalid", "only additions to spec.nodeSelector are allowed"):
        api.update("pods", {**pod, "spec": {**pod["spec"], "nodeSelector": {"a": "x"}}})
    with refused(422, "Invalid", "only additions are allowed (no mutations or deletions)"):
        api.update("pods", {**pod, "spec": {**pod["spec"], "affinity": required("rack", "zone")}})
    del pod["spec"]["schedulingGates"]
    pod = api.update("pods", pod)
    with refused(422, "Invalid", "pod updates may not change fields other than"):
        api.update("pods", {**pod, "spec": {**pod["spec"], "nodeSelector": {}}})


def test_a_status_write_also_writes_the_metadata(api: Api) -> None:
    other: Object = {"labels": {"q": "r"}, "annotations": {"q": "r"}, "finalizers": ["a.example/b"]}
    api.create("pods", a_pod())
    found = api.patch("pods", "p", {"metadata": other, "status": READY}, "status")["metadata"]
    assert {name: found[name] for name in other} == {**other, "labels": {"app": "p", "q": "r"}}
    api.patch("pods", "p", {"metadata": {"finalizers": None}})
    made = api.create("deployments", a_deployment())["metadata"]
    found = api.patch("deployments", made["name"], {"metadata": other}, "status")["metadata"]
    assert found.get("labels") == made.get("labels")
    assert found["finalizers"] == other["finalizers"]
    api.patch("deployments", made["name"], {"metadata": {"finalizers": None}})


@pytest.mark.every_store
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
