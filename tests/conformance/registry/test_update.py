"""PUT: optimistic concurrency, immutable fields, generation, status, finalizers."""

import asyncio
from typing import Any

import pytest
from tests.conformance.registry.conftest import Api, a_config_map, a_deployment, a_pod, a_service, copied

from federation.apimachinery.errors import BadRequest, Conflict, Invalid, NotFound
from federation.apiserver.verbs.requestoptions import WriteOptions

MODIFIED = (
    'Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes'
    " to the latest version and try again"
)


@pytest.mark.every_store
async def test_a_stale_resource_version_is_a_conflict(api: Api) -> None:
    old = await api.create("deployments", a_deployment())
    await api.update("deployments", {**old, "spec": {**old["spec"], "replicas": 2}})
    with pytest.raises(Conflict) as caught:
        await api.update("deployments", {**old, "spec": {**old["spec"], "replicas": 3}})
    assert caught.value.message == MODIFIED
    assert caught.value.details == {"name": "web", "group": "apps", "kind": "deployments"}


@pytest.mark.every_store
async def test_an_update_without_resource_version_overwrites(api: Api) -> None:
    await api.create("deployments", a_deployment())
    await api.update("deployments", a_deployment(replicas=2))
    made = await api.update("deployments", a_deployment(replicas=4))
    assert made["spec"]["replicas"] == 4


async def test_a_lock_is_never_overwritten_blindly(api: Api) -> None:
    await api.create("leases", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    with pytest.raises(Invalid, match=r"metadata\.resourceVersion: Invalid value: 0: must be specified for an update"):
        await api.update("leases", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}})


async def test_an_absent_object_is_not_found(api: Api) -> None:
    with pytest.raises(NotFound, match=r'deployments\.apps "web" not found'):
        await api.update("deployments", a_deployment())


async def test_some_kinds_are_created_by_put(api: Api) -> None:
    _, created = await api.put("clusterroles", {"metadata": {"name": "r"}, "rules": []})
    assert created
    _, created = await api.put("clusterroles", {"metadata": {"name": "r"}, "rules": []})
    assert not created


async def test_the_generation_counts_changes_of_the_spec_only(api: Api) -> None:
    made = await api.create("deployments", a_deployment())
    made["metadata"]["labels"]["x"] = "y"
    made = await api.update("deployments", made)
    assert made["metadata"]["generation"] == 1
    made["spec"]["replicas"] = 5
    made = await api.update("deployments", made)
    assert made["metadata"]["generation"] == 2


async def test_a_client_cannot_set_the_generation(api: Api) -> None:
    made = await api.create("deployments", a_deployment())
    made["metadata"]["generation"] = 50
    assert (await api.update("deployments", made))["metadata"]["generation"] == 1


@pytest.mark.every_store
async def test_an_update_that_changes_nothing_writes_nothing(api: Api) -> None:
    made = await api.create("deployments", a_deployment())
    before = await api.registry.store.revision()
    assert await api.update("deployments", made) == made
    assert await api.update("deployments", a_deployment()) == made
    assert await api.registry.store.revision() == before


async def test_the_main_resource_does_not_change_status(api: Api) -> None:
    made = await api.create("deployments", a_deployment())
    await api.update("deployments", {**made, "status": {"replicas": 1}}, subresource="status")
    live = await api.get("deployments", "web")
    live = await api.update("deployments", {**live, "status": {"replicas": 9}, "spec": {**live["spec"], "replicas": 2}})
    assert live["status"] == {"replicas": 1}


async def test_the_status_subresource_changes_nothing_else(api: Api) -> None:
    made = await api.create("deployments", a_deployment())
    wanted = copied(made)
    wanted["status"] = {"replicas": 1}
    wanted["spec"]["replicas"] = 9
    wanted["metadata"]["labels"] = {"new": "label"}
    live = await api.update("deployments", wanted, subresource="status")
    assert live["status"] == {"replicas": 1}
    assert live["spec"] == made["spec"]
    assert live["metadata"]["labels"] == made["metadata"]["labels"]
    assert live["metadata"]["generation"] == 1


async def test_a_kind_without_status_has_no_such_subresource(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        await api.update("configmaps", made, subresource="status")


async def test_a_wrong_uid_is_a_conflict(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    made["metadata"]["uid"] = "another"
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: another, UID in object meta:"):
        await api.update("configmaps", made)


async def test_creation_time_stays(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    before, made["metadata"]["creationTimestamp"] = made["metadata"]["creationTimestamp"], "2001-01-01T00:00:00Z"
    assert (await api.update("configmaps", made))["metadata"]["creationTimestamp"] == before


@pytest.mark.parametrize("zone", ["+00:00", ".000000+00:00"])
async def test_times_come_back_as_clients_write_them(api: Api, zone: str) -> None:
    """The Python clients parse times and send `+00:00` where the server said `Z`."""
    made = await api.create("configmaps", a_config_map(), field_manager="one")
    written = made["metadata"]["creationTimestamp"]
    made["metadata"]["creationTimestamp"] = written.replace("Z", zone)
    made["metadata"]["managedFields"][0]["time"] = written.replace("Z", zone)
    updated = await api.update("configmaps", made)
    assert updated["metadata"]["creationTimestamp"] == written
    assert updated["metadata"]["managedFields"][0]["time"] == written


async def test_the_name_must_be_that_of_the_url(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    info = api.info("configmaps")
    with pytest.raises(BadRequest, match=r"the name of the object \(other\) does not match the name on the URL \(cm\)"):
        await api.registry.update(info, "default", "cm", a_config_map("other"), WriteOptions())


async def test_dry_run_of_an_update_stores_nothing(api: Api) -> None:
    made = await api.create("deployments", a_deployment())
    answer = await api.update("deployments", a_deployment(replicas=7), dry_run=True)
    assert answer["spec"]["replicas"] == 7
    assert answer["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert await api.get("deployments", "web") == made


@pytest.mark.parametrize(
    ("plural", "first", "change", "field"),
    [
        (
            "deployments",
            a_deployment(),
            {
                "spec": {
                    "selector": {"matchLabels": {"app": "new"}},
                    "template": {"metadata": {"labels": {"app": "new"}}},
                }
            },
            "spec.selector",
        ),
        ("services", a_service(), {"spec": {"clusterIP": "10.96.9.9"}}, "spec.clusterIPs[0]"),
        ("pods", a_pod(), {"spec": {"nodeName": "n"}}, "spec"),
        (
            "statefulsets",
            {**a_deployment(), "kind": "StatefulSet"},
            {"spec": {"serviceName": "other"}},
            "spec",
        ),
        (
            "jobs",
            {
                "metadata": {"name": "j"},
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
            },
            {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}},
            "spec.template",
        ),
        (
            "persistentvolumeclaims",
            {
                "metadata": {"name": "c"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
            {"spec": {"accessModes": ["ReadWriteMany"]}},
            "spec",
        ),
        (
            "clusterrolebindings",
            {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "a"}},
            {"roleRef": {"name": "other"}},
            "roleRef",
        ),
        ("secrets", {"metadata": {"name": "s"}}, {"type": "example.com/other"}, "type"),
        (
            "storageclasses",
            {"metadata": {"name": "sc"}, "provisioner": "a"},
            {"provisioner": "b"},
            "provisioner",
        ),
        ("priorityclasses", {"metadata": {"name": "p"}, "value": 1}, {"value": 2}, "value"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_immutable_fields_stay(api: Api, plural: str, first: dict, change: dict, field: str) -> None:
    made = await api.create(plural, first)
    with pytest.raises(Invalid) as caught:
        await api.patch(plural, made["metadata"]["name"], change)
    assert field in {cause["field"] for cause in caught.value.details["causes"]}


async def test_a_pods_image_may_change(api: Api) -> None:
    made = await api.create("pods", a_pod())
    made["spec"]["containers"][0]["image"] = "nginx:1.26"
    assert (await api.update("pods", made))["spec"]["containers"][0]["image"] == "nginx:1.26"


async def test_a_bound_claim_may_ask_for_more_storage_and_for_no_less_than_it_has(api: Api) -> None:
    def asking(storage: str) -> dict[str, Any]:
        return {"spec": {"resources": {"requests": {"storage": storage}}}}

    spec = {"accessModes": ["ReadWriteOnce"], **asking("2Gi")["spec"]}
    await api.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec})
    bound = {"status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}}
    await api.patch("persistentvolumeclaims", "c", bound, subresource="status")
    made = await api.patch("persistentvolumeclaims", "c", asking("4Gi"))
    assert made["spec"]["resources"]["requests"]["storage"] == "4Gi"
    assert (await api.patch("persistentvolumeclaims", "c", asking("3Gi")))["spec"] != made["spec"]
    with pytest.raises(Invalid, match=r"field can not be less than status\.capacity"):
        await api.patch("persistentvolumeclaims", "c", asking("1Gi"))


async def test_an_immutable_config_map_keeps_its_data(api: Api) -> None:
    await api.create("configmaps", {**a_config_map(), "immutable": True})
    with pytest.raises(Invalid, match="data: Forbidden: field is immutable when `immutable` is set"):
        await api.patch("configmaps", "cm", {"data": {"k": "other"}})
    with pytest.raises(Invalid, match="immutable: Forbidden"):
        await api.patch("configmaps", "cm", {"immutable": None})


async def test_taking_the_last_finalizer_of_a_terminating_object_removes_it(api: Api) -> None:
    await api.create("configmaps", a_config_map(finalizers=["example.com/hold"]))
    await api.delete("configmaps", "cm")
    live = await api.get("configmaps", "cm")
    live["metadata"]["finalizers"] = []
    await api.update("configmaps", live)
    assert not await api.exists("configmaps", "cm")


async def test_a_terminating_object_takes_no_new_finalizers(api: Api) -> None:
    await api.create("configmaps", a_config_map(finalizers=["example.com/hold"]))
    await api.delete("configmaps", "cm")
    with pytest.raises(Invalid) as caught:
        await api.patch("configmaps", "cm", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})
    assert caught.value.details["causes"][0]["message"] == (
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers"
        ' []string{"example.com/more"}'
    )


async def test_a_deletion_timestamp_cannot_be_taken_back(api: Api) -> None:
    await api.create("configmaps", a_config_map(finalizers=["example.com/hold"]))
    await api.delete("configmaps", "cm")
    live = await api.get("configmaps", "cm")
    live["metadata"].pop("deletionTimestamp")
    live["metadata"]["labels"] = {"a": "b"}
    assert (await api.update("configmaps", live))["metadata"]["deletionTimestamp"]


@pytest.mark.every_store
async def test_concurrent_blind_updates_all_succeed(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    changed = [api.patch("configmaps", "cm", {"data": {f"k{i}": "v"}}) for i in range(4)]
    await asyncio.gather(*changed)
    live = await api.get("configmaps", "cm")
    assert set(live["data"]) == {"k", "k0", "k1", "k2", "k3"}


@pytest.mark.every_store
async def test_of_two_updates_with_the_same_version_one_wins(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    attempts = [api.update("configmaps", {**made, "data": {"k": str(i)}}) for i in range(2)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sum(isinstance(result, Conflict) for result in results) == 1


async def test_metadata_that_changes_is_checked_field_by_field(api: Api) -> None:
    made = await api.create("configmaps", a_config_map("c"))
    changed = copied(made)
    changed["metadata"] |= {"nonsense": 1, "labels": {"a": "b", "none": None}}
    stored = await api.update("configmaps", changed)
    assert "nonsense" not in stored["metadata"]
    assert stored["metadata"]["labels"] == {"a": "b", "none": ""}, "a null in a map of texts is an empty text"
    for field, wrong in (("labels", ["a"]), ("managedFields", "a"), ("finalizers", {"a": "b"})):
        broken = copied(stored)
        broken["metadata"][field] = wrong
        with pytest.raises(BadRequest, match=rf"metadata\.{field}"):
            await api.update("configmaps", broken)


async def test_true_does_not_pass_for_an_unchanged_one(api: Api) -> None:
    made = await api.create("deployments", a_deployment(replicas=1))
    lied = {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}, "spec": {**made["spec"], "replicas": True}}
    with pytest.raises(BadRequest, match=r"cannot unmarshal bool into Go struct field DeploymentSpec\.spec\.replicas"):
        await api.update("deployments", lied)
    assert await api.get("deployments", "web") == made
