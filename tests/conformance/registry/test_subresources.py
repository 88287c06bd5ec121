"""scale, binding, eviction, finalize."""

from typing import Any

import pytest
from tests.conformance.registry.conftest import JSON, Api, a_config_map, a_deployment, a_pod

from federation.apimachinery.errors import BadRequest, Conflict, Invalid, MethodNotAllowed, NotFound, TooManyRequests


async def test_a_scale_shows_replicas_and_selector(api: Api) -> None:
    made = await api.create("deployments", a_deployment(replicas=3))
    await api.patch("deployments", "web", {"status": {"replicas": 2}}, subresource="status")
    scale = await api.get("deployments", "web", subresource="scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 2, "selector": "app=web"}
    assert scale["metadata"]["uid"] == made["metadata"]["uid"]


async def test_updating_a_scale_changes_the_replicas_and_nothing_else(api: Api) -> None:
    made = await api.create("deployments", a_deployment())
    scale = await api.get("deployments", "web", subresource="scale")
    answer = await api.update("deployments", {**scale, "spec": {"replicas": 7}}, subresource="scale")
    assert answer["spec"] == {"replicas": 7}
    live = await api.get("deployments", "web")
    assert live["spec"] == {**made["spec"], "replicas": 7}
    assert live["metadata"]["generation"] == 2


async def test_a_stale_scale_is_a_conflict(api: Api) -> None:
    await api.create("deployments", a_deployment())
    scale = await api.get("deployments", "web", subresource="scale")
    await api.patch("deployments", "web", {"spec": {"paused": True}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await api.update("deployments", {**scale, "spec": {"replicas": 7}}, subresource="scale")


@pytest.mark.parametrize(
    ("patch", "options"),
    [({"spec": {"replicas": 5}}, {}), ([{"op": "replace", "path": "/spec/replicas", "value": 5}], {"type_": JSON})],
    ids=["merge", "json"],
)
async def test_patching_a_scale(api: Api, patch: object, options: dict[str, str]) -> None:
    await api.create("deployments", a_deployment())
    answer = await api.patch("deployments", "web", patch, subresource="scale", **options)
    assert answer["spec"] == {"replicas": 5}
    assert (await api.get("deployments", "web"))["spec"]["replicas"] == 5


async def test_a_negative_scale_is_invalid(api: Api) -> None:
    await api.create("deployments", a_deployment())
    with pytest.raises(Invalid, match=r"spec\.replicas: Invalid value: -2: must be greater than or equal to 0"):
        await api.patch("deployments", "web", {"spec": {"replicas": -2}}, subresource="scale")


@pytest.mark.parametrize("replicas", ["2", [], {}, "", False, 1.0, 2**31])
async def test_a_scale_is_a_32_bit_integer(api: Api, replicas: object) -> None:
    await api.create("deployments", a_deployment(replicas=4))
    with pytest.raises(BadRequest, match=r"spec\.replicas: must be a 32-bit integer"):
        await api.patch("deployments", "web", {"spec": {"replicas": replicas}}, subresource="scale")
    assert (await api.get("deployments", "web"))["spec"]["replicas"] == 4


async def test_scaling_is_recorded_as_the_scale_subresource(api: Api) -> None:
    await api.create("deployments", a_deployment(), field_manager="kubectl-create")
    await api.patch("deployments", "web", {"spec": {"replicas": 4}}, subresource="scale", field_manager="hpa")
    managed = (await api.get("deployments", "web"))["metadata"]["managedFields"]
    assert {(entry["manager"], entry.get("subresource")) for entry in managed} == {
        ("kubectl-create", None),
        ("hpa", "scale"),
    }


async def test_a_config_map_cannot_be_scaled(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    with pytest.raises(NotFound):
        await api.get("configmaps", "cm", subresource="scale")


async def test_a_scale_cannot_be_created(api: Api) -> None:
    with pytest.raises(MethodNotAllowed):
        await api.create("deployments", {}, name="web", subresource="scale")


async def test_binding_assigns_a_pod_once(api: Api) -> None:
    await api.create("pods", a_pod())
    binding = {"kind": "Binding", "target": {"kind": "Node", "name": "n1"}}
    answer = await api.create("pods", binding, name="p", subresource="binding")
    assert answer["status"] == "Success"
    live = await api.get("pods", "p")
    assert live["spec"]["nodeName"] == "n1"
    assert live["status"]["conditions"][0]["type"] == "PodScheduled"
    with pytest.raises(Conflict, match='pod p is already assigned to node "n1"'):
        await api.create("pods", binding, name="p", subresource="binding")


async def test_a_binding_needs_a_target(api: Api) -> None:
    await api.create("pods", a_pod())
    with pytest.raises(Invalid, match=r"target\.name: Required value"):
        await api.create("pods", {"target": {}}, name="p", subresource="binding")


async def test_eviction_deletes_a_pod(api: Api) -> None:
    await api.create("pods", a_pod())
    await api.create("pods", {"kind": "Eviction", "metadata": {"name": "p"}}, name="p", subresource="eviction")
    assert not await api.exists("pods", "p")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("x", BadRequest),
        ([1], BadRequest),
        ({"gracePeriodSeconds": "x"}, BadRequest),
        ({"preconditions": 5}, BadRequest),
        ({"dryRun": "All"}, BadRequest),
        ({"dryRun": ["x"]}, Invalid),
        ({"propagationPolicy": "x"}, Invalid),
        ({"preconditions": {"uid": "another"}}, Conflict),
    ],
)
async def test_an_eviction_with_bad_options_deletes_nothing(api: Api, options: object, error: type[Exception]) -> None:
    await api.create("pods", a_pod())
    with pytest.raises(error):
        await api.create(
            "pods",
            {"kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": options},
            name="p",
            subresource="eviction",
        )
    assert await api.exists("pods", "p")


async def a_running_pod(api: Api, *, is_ready: bool = True) -> None:
    pod = a_pod()
    pod["metadata"]["labels"] = {"app": "a"}
    await api.create("pods", pod)
    ready = [{"type": "Ready", "status": "True" if is_ready else "False"}]
    await api.patch("pods", "p", {"status": {"phase": "Running", "conditions": ready}}, subresource="status")


async def a_budget(api: Api, **status: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    await api.create("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": spec})
    if status:
        await api.patch("poddisruptionbudgets", "b", {"status": status}, subresource="status")


async def evict(api: Api) -> None:
    await api.create("pods", {"kind": "Eviction", "metadata": {"name": "p"}}, name="p", subresource="eviction")


async def test_a_disruption_budget_stops_an_eviction(api: Api) -> None:
    await a_running_pod(api)
    await a_budget(api, observedGeneration=1, desiredHealthy=1, currentHealthy=1)
    with pytest.raises(TooManyRequests, match="Cannot evict pod as it would violate") as caught:
        await evict(api)
    (cause,) = caught.value.details["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"
    await api.patch("poddisruptionbudgets", "b", {"status": {"disruptionsAllowed": 1}}, subresource="status")
    await evict(api)
    assert not await api.exists("pods", "p")
    assert (await api.get("poddisruptionbudgets", "b"))["status"]["disruptionsAllowed"] == 0


@pytest.mark.parametrize("is_of_request", [False, True], ids=["deleteOptions", "request"])
async def test_a_dry_run_of_an_eviction_takes_nothing_from_the_budget(api: Api, is_of_request: bool) -> None:
    """`kubectl drain --dry-run=server` says so in the options of the deletion."""
    await a_running_pod(api)
    await a_budget(api, observedGeneration=1, desiredHealthy=1, currentHealthy=2, disruptionsAllowed=1)
    eviction: dict[str, Any] = {"kind": "Eviction", "metadata": {"name": "p"}}
    if not is_of_request:
        eviction["deleteOptions"] = {"dryRun": ["All"]}
    await api.create("pods", eviction, name="p", subresource="eviction", dry_run=is_of_request)
    assert await api.exists("pods", "p")
    status = (await api.get("poddisruptionbudgets", "b"))["status"]
    assert (status["disruptionsAllowed"], status.get("disruptedPods")) == (1, None)


async def test_a_budget_without_a_current_status_delays_an_eviction(api: Api) -> None:
    await a_running_pod(api)
    await a_budget(api)
    with pytest.raises(TooManyRequests) as caught:
        await evict(api)
    assert caught.value.details["retryAfterSeconds"] == 10
    assert "is still being processed by the server" in caught.value.details["causes"][0]["message"]


async def test_a_pod_that_has_not_begun_is_in_no_budget(api: Api) -> None:
    pod = a_pod()
    pod["metadata"]["labels"] = {"app": "a"}
    await api.create("pods", pod)
    await a_budget(api)
    await evict(api)
    assert not await api.exists("pods", "p")


async def test_a_pod_that_is_not_ready_may_go_when_enough_others_are(api: Api) -> None:
    await a_running_pod(api, is_ready=False)
    await a_budget(api, observedGeneration=1, desiredHealthy=1, currentHealthy=0)
    with pytest.raises(TooManyRequests):
        await evict(api)
    await api.patch("poddisruptionbudgets", "b", {"status": {"currentHealthy": 1}}, subresource="status")
    await evict(api)
    assert not await api.exists("pods", "p")


async def test_finalizing_a_terminating_namespace_removes_it(api: Api) -> None:
    await api.create("namespaces", {"metadata": {"name": "x"}})
    await api.delete("namespaces", "x")
    await api.update("namespaces", {"metadata": {"name": "x"}, "spec": {"finalizers": []}}, subresource="finalize")
    assert not await api.exists("namespaces", "x")


async def test_an_ordinary_update_cannot_finalize_a_namespace(api: Api) -> None:
    await api.create("namespaces", {"metadata": {"name": "x"}})
    made = await api.patch("namespaces", "x", {"spec": {"finalizers": []}})
    assert made["spec"]["finalizers"] == ["kubernetes"]
