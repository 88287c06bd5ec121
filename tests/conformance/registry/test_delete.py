"""DELETE: preconditions, finalizers, propagation, grace, collections."""

import pytest
from tests.conformance.registry.conftest import Api, a_config_map, a_deployment, a_pod, a_service

from federation.apimachinery.errors import Conflict, Forbidden, Invalid, NotFound
from federation.apiserver.verbs.requestoptions import DeleteOptions, ListOptions


async def test_an_object_is_removed_at_once_and_a_status_is_returned(api: Api) -> None:
    made = await api.create("deployments", a_deployment())
    answer, gone = await api.delete("deployments", "web")
    assert gone
    assert answer["status"] == "Success"
    assert answer["details"] == {
        "name": "web",
        "group": "apps",
        "kind": "deployments",
        "uid": made["metadata"]["uid"],
    }
    with pytest.raises(NotFound):
        await api.get("deployments", "web")


async def test_some_kinds_answer_with_the_object(api: Api) -> None:
    await api.create("services", a_service())
    answer, gone = await api.delete("services", "svc")
    assert gone
    assert answer["kind"] == "Service"


async def test_deleting_an_absent_object_is_not_found(api: Api) -> None:
    with pytest.raises(NotFound, match='configmaps "cm" not found'):
        await api.delete("configmaps", "cm")


async def test_finalizers_hold_an_object(api: Api) -> None:
    await api.create("deployments", {**a_deployment(), "metadata": {"name": "web", "finalizers": ["example.com/a"]}})
    answer, gone = await api.delete("deployments", "web")
    assert not gone
    assert answer["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 0
    assert answer["metadata"]["generation"] == 2


@pytest.mark.every_store
async def test_deleting_a_terminating_object_again_writes_nothing(api: Api) -> None:
    await api.create("configmaps", a_config_map(finalizers=["example.com/a"]))
    first, _ = await api.delete("configmaps", "cm")
    before = await api.registry.store.revision()
    again, gone = await api.delete("configmaps", "cm")
    assert (again, gone) == (first, False)
    assert await api.registry.store.revision() == before


async def test_a_wrong_uid_precondition_is_a_conflict(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    with pytest.raises(Conflict) as caught:
        await api.delete("configmaps", "cm", uid="other")
    assert caught.value.message == (
        'Operation cannot be fulfilled on ConfigMap "cm": the UID in the precondition (other) does not match the UID in'
        f" record ({made['metadata']['uid']}). The object might have been deleted and then recreated"
    )


@pytest.mark.every_store
async def test_a_stale_resource_version_precondition_is_a_conflict(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    await api.patch("configmaps", "cm", {"data": {"a": "b"}})
    with pytest.raises(Conflict, match="the ResourceVersion in the precondition"):
        await api.delete("configmaps", "cm", resource_version=made["metadata"]["resourceVersion"])


@pytest.mark.every_store
async def test_matching_preconditions_delete(api: Api) -> None:
    meta = (await api.create("configmaps", a_config_map()))["metadata"]
    _, gone = await api.delete("configmaps", "cm", uid=meta["uid"], resource_version=meta["resourceVersion"])
    assert gone


async def test_dry_run_deletes_nothing(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    _, gone = await api.delete("configmaps", "cm", dry_run=True)
    assert gone
    assert await api.exists("configmaps", "cm")


async def test_foreground_deletion_is_a_finalizer(api: Api) -> None:
    await api.create("deployments", a_deployment())
    answer, gone = await api.delete("deployments", "web", propagation_policy="Foreground")
    assert not gone
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_orphaning_is_a_finalizer(api: Api) -> None:
    await api.create("deployments", a_deployment())
    answer, _ = await api.delete("deployments", "web", propagation_policy="Orphan")
    assert answer["metadata"]["finalizers"] == ["orphan"]


async def test_a_later_policy_replaces_an_earlier_one(api: Api) -> None:
    await api.create("deployments", a_deployment())
    await api.delete("deployments", "web", propagation_policy="Orphan")
    _, gone = await api.delete("deployments", "web", propagation_policy="Background")
    assert gone


async def test_the_old_orphan_flag_still_works(api: Api) -> None:
    await api.create("deployments", a_deployment())
    answer, _ = await api.delete("deployments", "web", orphan_dependents=True)
    assert answer["metadata"]["finalizers"] == ["orphan"]


async def test_an_unknown_policy_is_invalid(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    with pytest.raises(Invalid, match='propagationPolicy: Unsupported value: "Sideways"'):
        await api.delete("configmaps", "cm", propagation_policy="Sideways")


async def test_policy_and_orphan_flag_exclude_each_other(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    with pytest.raises(Invalid, match="cannot be both set"):
        await api.delete("configmaps", "cm", propagation_policy="Background", orphan_dependents=True)


async def test_a_pod_without_a_node_goes_at_once(api: Api) -> None:
    await api.create("pods", a_pod())
    answer, gone = await api.delete("pods", "p")
    assert gone
    assert answer["kind"] == "Pod"


async def test_a_pod_on_a_node_waits_for_its_kubelet(api: Api) -> None:
    await api.create("pods", a_pod(nodeName="n1"))
    answer, gone = await api.delete("pods", "p")
    assert not gone
    assert answer["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 30
    _, gone = await api.delete("pods", "p", grace_period_s=0)
    assert gone


async def test_a_shorter_grace_period_brings_the_end_nearer(api: Api) -> None:
    await api.create("pods", a_pod(nodeName="n1"))
    await api.delete("pods", "p")
    answer, _ = await api.delete("pods", "p", grace_period_s=5)
    assert answer["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:05Z"
    answer, _ = await api.delete("pods", "p", grace_period_s=60)
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 5


async def test_a_finished_pod_goes_at_once(api: Api) -> None:
    await api.create("pods", a_pod(nodeName="n1"))
    await api.patch("pods", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    _, gone = await api.delete("pods", "p")
    assert gone


async def test_the_writes_of_a_terminating_pod_do_not_end_it(api: Api) -> None:
    await api.create("pods", a_pod(nodeName="n1"))
    await api.delete("pods", "p")
    await api.patch("pods", "p", {"status": {"phase": "Running"}}, subresource="status")
    assert await api.exists("pods", "p")


async def test_the_basic_namespaces_may_not_be_deleted(api: Api) -> None:
    with pytest.raises(Forbidden, match='namespaces "default" is forbidden: this namespace may not be deleted'):
        await api.delete("namespaces", "default")


@pytest.mark.every_store
async def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    await api.create("configmaps", a_config_map("a", {"x": "1"}))
    await api.create("configmaps", a_config_map("b", {"x": "2"}))
    info = api.info("configmaps")
    answer = await api.registry.delete_collection(info, "default", ListOptions(label_selector="x=1"), DeleteOptions())
    assert len(answer.items) == 1
    assert "a" not in await api.names("configmaps")
    assert "b" in await api.names("configmaps")
