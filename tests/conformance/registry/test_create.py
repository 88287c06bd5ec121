"""POST: system fields, defaults, and invalid objects."""

import re

import orjson
import pytest
from tests.conformance.registry.conftest import APPLY, Api, a_config_map, a_deployment, a_pod

from federation.apimachinery.errors import AlreadyExists, BadRequest, Forbidden, Invalid, NotFound


async def test_a_new_object_gets_uid_creation_time_and_resource_version(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    assert re.fullmatch(r"[0-9a-f-]{36}", made["metadata"]["uid"])
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert int(made["metadata"]["resourceVersion"]) == await api.registry.store.revision()
    assert made["metadata"]["namespace"] == "default"


@pytest.mark.every_store
async def test_the_response_is_the_stored_object(api: Api) -> None:
    made = await api.create("deployments", a_deployment())
    assert made == await api.get("deployments", "web")


async def test_a_workload_starts_at_generation_one(api: Api) -> None:
    made = await api.create("deployments", a_deployment())
    assert made["metadata"]["generation"] == 1


async def test_a_config_map_has_no_generation(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    assert "generation" not in made["metadata"]


async def test_a_client_cannot_choose_the_systems_fields(api: Api) -> None:
    wanted = a_config_map(
        uid="mine", creationTimestamp="2000-01-01T00:00:00Z", generation=7, deletionTimestamp="2000-01-01T00:00:00Z"
    )
    made = (await api.create("configmaps", wanted))["metadata"]
    assert made["uid"] != "mine"
    assert made["creationTimestamp"].startswith("2026")
    assert made["generation"] == 7  # as in Kubernetes, for kinds whose generation is not counted
    assert "deletionTimestamp" not in made


async def test_a_resource_version_on_a_new_object_is_refused(api: Api) -> None:
    with pytest.raises(BadRequest, match="resourceVersion should not be set on objects to be created"):
        await api.create("configmaps", a_config_map(resourceVersion="5"))


@pytest.mark.every_store
async def test_creating_twice_is_already_exists(api: Api) -> None:
    await api.create("deployments", a_deployment())
    with pytest.raises(AlreadyExists) as caught:
        await api.create("deployments", a_deployment())
    assert caught.value.message == 'deployments.apps "web" already exists'
    assert caught.value.details == {"name": "web", "group": "apps", "kind": "deployments"}


@pytest.mark.every_store
async def test_generate_name_adds_five_letters(api: Api) -> None:
    wanted = a_config_map()
    wanted["metadata"] = {"generateName": "job-"}
    made = await api.create("configmaps", wanted)
    assert re.fullmatch(r"job-[a-z0-9]{5}", made["metadata"]["name"])


async def test_an_object_without_a_name_is_invalid(api: Api) -> None:
    wanted = a_config_map()
    wanted["metadata"] = {}
    with pytest.raises(Invalid, match=r"metadata\.name: Required value: name or generateName is required"):
        await api.create("configmaps", wanted)


@pytest.mark.parametrize(
    ("plural", "name", "text"),
    [
        ("configmaps", "Upper", "a lowercase RFC 1123 subdomain must consist of"),
        ("configmaps", "a" * 254, "must be no more than 253 characters"),
        ("namespaces", "has.dots", "must not contain dots"),
        ("services", "has.dots", "must not contain dots"),
        ("roles", "a/b", "may not contain '/'"),
    ],
    ids=["upper case", "too long", "namespace with a dot", "service with a dot", "role with a slash"],
)
async def test_names_follow_the_rule_of_their_kind(api: Api, plural: str, name: str, text: str) -> None:
    with pytest.raises(Invalid) as caught:
        await api.create(plural, {"metadata": {"name": name}})
    assert f"metadata.name: Invalid value: {orjson.dumps(name).decode()}: {text}" in caught.value.message


async def test_role_names_may_have_colons(api: Api) -> None:
    made = await api.create("clusterroles", {"metadata": {"name": "system:Node"}, "rules": []})
    assert made["metadata"]["name"] == "system:Node"


async def test_bad_labels_are_named(api: Api) -> None:
    with pytest.raises(Invalid) as caught:
        await api.create("configmaps", a_config_map(labels={"a b": "ok", "ok": "no spaces"}))
    fields = {cause["field"] for cause in caught.value.details["causes"]}
    assert fields == {"metadata.labels"}
    assert len(caught.value.details["causes"]) == 2


async def test_too_many_annotations_are_refused(api: Api) -> None:
    with pytest.raises(Invalid, match=r"metadata\.annotations: Too long: may not be more than 262144 bytes"):
        await api.create("configmaps", a_config_map(annotations={"a": "x" * 262144}))


async def test_a_missing_namespace_is_not_found(api: Api) -> None:
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        await api.create("configmaps", a_config_map(), "nowhere")


async def test_a_terminating_namespace_takes_no_new_objects(api: Api) -> None:
    await api.create("namespaces", {"metadata": {"name": "ending"}})
    await api.delete("namespaces", "ending")
    with pytest.raises(Forbidden) as caught:
        await api.create("configmaps", a_config_map(), "ending")
    assert caught.value.message == (
        'configmaps "cm" is forbidden: unable to create new content in namespace ending because it is being terminated'
    )
    assert caught.value.details["causes"][0]["reason"] == "NamespaceTerminating"


async def test_a_text_that_mentions_termination_does_not_close_a_namespace(api: Api) -> None:
    note = {"metadata": {"name": "odd", "annotations": {"note": '"deletionTimestamp":"2020"'}}}
    await api.create("namespaces", note)
    assert await api.create("configmaps", a_config_map(), "odd")


async def test_the_namespace_of_the_object_must_be_that_of_the_request(api: Api) -> None:
    with pytest.raises(BadRequest, match="does not match the namespace sent on the request"):
        await api.create("configmaps", a_config_map(namespace="kube-system"))


async def test_another_kind_is_refused(api: Api) -> None:
    with pytest.raises(BadRequest, match="does not match the expected kind"):
        await api.create("configmaps", {**a_config_map(), "kind": "Secret"})


async def test_another_api_version_is_refused(api: Api) -> None:
    with pytest.raises(BadRequest, match="does not match the expected API version"):
        await api.create("deployments", {**a_deployment(), "apiVersion": "apps/v2"})


@pytest.mark.every_store
async def test_dry_run_stores_nothing(api: Api) -> None:
    before = await api.registry.store.revision()
    made = await api.create("deployments", a_deployment(), dry_run=True)
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    assert await api.registry.store.revision() == before


async def test_dry_run_sees_that_the_name_is_taken(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    with pytest.raises(AlreadyExists):
        await api.create("configmaps", a_config_map(), dry_run=True)


async def test_status_of_a_new_object_is_dropped(api: Api) -> None:
    made = await api.create("deployments", {**a_deployment(), "status": {"replicas": 5}})
    assert made["status"] == {}


async def test_unknown_fields_are_dropped_with_a_warning(api: Api) -> None:
    warnings: list[str] = []
    made = await api.create("deployments", a_deployment(imagee="x"), warnings=warnings)
    assert "imagee" not in made["spec"]
    assert warnings == ['unknown field "spec.imagee"']


async def test_strict_validation_refuses_unknown_fields(api: Api) -> None:
    with pytest.raises(BadRequest, match=r'strict decoding error: unknown field "spec\.imagee"'):
        await api.create("deployments", a_deployment(imagee="x"), field_validation="Strict")


async def test_a_null_does_not_hide_an_unknown_field(api: Api) -> None:
    with pytest.raises(BadRequest, match=r'strict decoding error: unknown field "spec\.imagee"'):
        await api.create("deployments", a_deployment(imagee=None), field_validation="Strict")


async def test_ignoring_unknown_fields_gives_no_warning(api: Api) -> None:
    warnings: list[str] = []
    await api.create("deployments", a_deployment(imagee="x"), field_validation="Ignore", warnings=warnings)
    assert warnings == []


async def test_an_unknown_validation_mode_is_refused(api: Api) -> None:
    with pytest.raises(BadRequest, match="fieldValidation"):
        await api.create("deployments", a_deployment(), field_validation="Perhaps")


async def test_a_wrong_type_is_a_bad_request(api: Api) -> None:
    with pytest.raises(BadRequest, match='Deployment in version "v1" cannot be handled as a Deployment'):
        await api.create("deployments", a_deployment(replicas="three"))


async def test_nulls_mean_absent(api: Api) -> None:
    made = await api.create("deployments", a_deployment(paused=None))
    assert "paused" not in made["spec"]
    assert "creationTimestamp" not in made["spec"]["template"]["metadata"]


@pytest.mark.every_store
async def test_user_texts_cannot_be_taken_for_the_revision(api: Api) -> None:
    trap = '"metadata":{"resourceVersion":"999","uid":"x"'
    made = await api.create("configmaps", {**a_config_map(annotations={"a": trap}), "data": {"a": trap}})
    got = await api.get("configmaps", "cm")
    assert got == made
    assert got["data"] == {"a": trap}
    assert got["metadata"]["resourceVersion"] != "999"


@pytest.mark.every_store
async def test_unicode_survives(api: Api) -> None:
    made = await api.create("configmaps", {**a_config_map(), "data": {"a": "多集群 🚢"}})
    assert made["data"] == {"a": "多集群 🚢"}


async def test_a_deployment_gets_kubernetes_defaults(api: Api) -> None:
    spec = (await api.create("deployments", a_deployment()))["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert spec["progressDeadlineSeconds"] == 600
    assert spec["revisionHistoryLimit"] == 10
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "Always"
    assert pod["terminationGracePeriodSeconds"] == 30
    assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"


async def test_the_latest_image_is_always_pulled(api: Api) -> None:
    wanted = a_pod()
    wanted["spec"]["containers"][0]["image"] = "registry.example.com:5000/team/app"
    made = await api.create("pods", wanted)
    assert made["spec"]["containers"][0]["imagePullPolicy"] == "Always"


async def test_a_pod_starts_pending_with_its_quality_of_service(api: Api) -> None:
    wanted = a_pod()
    wanted["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    made = await api.create("pods", wanted)
    assert made["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


async def test_a_secret_takes_plain_texts(api: Api) -> None:
    made = await api.create("secrets", {"metadata": {"name": "s"}, "stringData": {"password": "x"}})
    assert made["data"] == {"password": "eA=="}
    assert "stringData" not in made
    assert made["type"] == "Opaque"


async def test_a_job_gets_selector_and_labels_from_its_uid(api: Api) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    made = await api.create("jobs", {"metadata": {"name": "j"}, "spec": {"template": template}})
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["spec"]["template"]["metadata"]["labels"]["job-name"] == "j"
    assert made["spec"]["completions"] == made["spec"]["parallelism"] == 1


async def test_a_manager_that_names_itself_owns_its_fields(api: Api) -> None:
    made = await api.create("configmaps", a_config_map(), field_manager="kubectl-create")
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl-create", "Update")
    assert "f:data" in entry["fieldsV1"]


async def test_a_write_without_a_field_manager_is_not_tracked(api: Api) -> None:
    assert "managedFields" not in (await api.create("configmaps", a_config_map()))["metadata"]


async def test_creation_finalizers_are_added_and_survive_applies(api: Api) -> None:
    api.registry.set_creation_finalizers(
        lambda resource, _: ("example.com/ours",) if resource.kind == "ConfigMap" else (), manager="federation"
    )
    made = await api.create("configmaps", a_config_map(finalizers=["example.com/theirs"]), field_manager="writer")
    assert made["metadata"]["finalizers"] == ["example.com/theirs", "example.com/ours"]
    owners = {entry["manager"]: entry["fieldsV1"]["f:metadata"] for entry in made["metadata"]["managedFields"]}
    assert owners["federation"] == {"f:finalizers": {'v:"example.com/ours"': {}}}
    assert owners["writer"]["f:finalizers"] == {".": {}, 'v:"example.com/theirs"': {}}

    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    for data in ({"a": "1"}, {"b": "2"}):
        applied = await api.patch("configmaps", "applied", {**body, "data": data}, type_=APPLY, field_manager="kubectl")
        assert applied["metadata"]["finalizers"] == ["example.com/ours"]
    secret = await api.create("secrets", {"metadata": {"name": "other"}})
    assert "finalizers" not in secret["metadata"]


async def test_a_finalizer_of_this_process_is_put_on_an_object_once(api: Api) -> None:
    api.registry.set_creation_finalizers(lambda *_: ("example.com/ours",), manager="federation")
    made = await api.create("configmaps", a_config_map(finalizers=["example.com/ours"]))
    assert made["metadata"]["finalizers"] == ["example.com/ours"]
