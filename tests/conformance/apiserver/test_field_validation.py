"""Conformance area: field validation and names."""

import json

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_deployment, a_pod, a_service
from tests.support.rest import MERGE, STRATEGIC, Api, Refused, refused


def test_strict_refuses_unknown_fields(api: Api) -> None:
    """[sig-api-machinery] FieldValidation should detect unknown and duplicate fields of a typed object."""
    with refused(400, "BadRequest", 'unknown field "spec.nonsense"'):
        api.create("deployments", a_deployment(nonsense=1), fieldValidation="Strict")
    assert not api.exists("deployments", "web")


def test_strict_refuses_duplicate_fields(api: Api) -> None:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm"},"data":{"a":"1","a":"2"}}'
    with refused(400, "BadRequest", 'duplicate field "data.a"'):
        api.create("configmaps", body, fieldValidation="Strict")


def test_warn_keeps_the_rest_and_warns(api: Api) -> None:
    answer = api.send("POST", api.url("deployments"), a_deployment(nonsense=1), fieldValidation="Warn")
    assert '299 - "unknown field \\"spec.nonsense\\""' in answer.headers["warning"]
    assert "nonsense" not in answer.json()["spec"]


def test_warn_is_the_default(api: Api) -> None:
    answer = api.send("POST", api.url("deployments"), a_deployment(nonsense=1))
    assert "spec.nonsense" in answer.headers["warning"]


def test_ignore_gives_no_warning(api: Api) -> None:
    answer = api.send("POST", api.url("deployments"), a_deployment(nonsense=1), fieldValidation="Ignore")
    assert "warning" not in answer.headers


def test_an_unknown_directive_is_refused(api: Api) -> None:
    with refused(422, "Invalid", "fieldValidation"):
        api.create("configmaps", a_config_map(), fieldValidation="Perhaps")


def test_strict_holds_for_updates_and_patches(api: Api) -> None:
    created = api.create("deployments", a_deployment())
    created["spec"]["nonsense"] = 1
    with refused(400, "BadRequest", 'unknown field "spec.nonsense"'):
        api.update("deployments", created, fieldValidation="Strict")
    for type_ in (MERGE, STRATEGIC):
        with pytest.raises(Refused, match=r"spec\.nonsense") as caught:
            api.patch("deployments", "web", {"spec": {"nonsense": 1}}, type_=type_, fieldValidation="Strict")
        assert caught.value.code in {400, 422}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b'"text"', b"\xff\xfe", b'{"metadata":'])
def test_a_body_that_is_no_object_is_a_bad_request(api: Api, body: bytes) -> None:
    with refused(400, "BadRequest"):
        api.create("configmaps", body)


def test_null_is_an_object_without_fields(api: Api) -> None:
    with refused(422, "Invalid", 'ConfigMap "" is invalid: metadata.name: Required value') as caught:
        api.create("configmaps", b"null")
    assert (caught.value.status["details"]["kind"], caught.value.fields) == ("ConfigMap", ["metadata.name"])
    assert not {"name", "group"} & caught.value.status["details"].keys()


def test_a_wrong_type_is_a_bad_request(api: Api) -> None:
    with refused(400, "BadRequest", "cannot be handled as a Deployment"):
        api.create("deployments", a_deployment(replicas="three"))


def test_another_kind_is_a_bad_request(api: Api) -> None:
    with refused(400, "BadRequest"):
        api.create("configmaps", {**a_config_map(), "kind": "Secret"})


def test_another_namespace_is_a_bad_request(api: Api) -> None:
    with refused(400, "BadRequest", "the namespace of the provided object does not match"):
        api.create("configmaps", a_config_map(namespace="elsewhere"))


@pytest.mark.parametrize(
    ("plural", "name"),
    [
        ("configmaps", "UPPER"),
        ("configmaps", "a_b"),
        ("configmaps", "-a"),
        ("configmaps", "a" * 254),
        ("services", "A"),
        ("services", "a.b"),
        ("services", "a" * 64),
    ],
)
def test_names_are_checked(api: Api, plural: str, name: str) -> None:
    body = a_config_map(name) if plural == "configmaps" else a_service(name, selector={})
    with refused(422, "Invalid") as caught:
        api.create(plural, body)
    assert caught.value.fields == ["metadata.name"]


def test_the_name_of_a_service_may_begin_with_a_digit(api: Api) -> None:
    assert api.create("services", a_service("1a"))["metadata"]["name"] == "1a"


def test_a_name_is_required(api: Api) -> None:
    with refused(422, "Invalid", "name or generateName is required"):
        api.create("configmaps", {"data": {}})


@pytest.mark.every_store
def test_generate_name_adds_five_letters(api: Api) -> None:
    body = a_config_map()
    body["metadata"] = {"generateName": "cm-"}
    name = api.create("configmaps", body)["metadata"]["name"]
    assert (name[:3], len(name)) == ("cm-", 8)


@pytest.mark.parametrize("labels", [{"a b": "c"}, {"a": "b c"}, {"a": "x" * 64}, {"/a": "b"}])
def test_labels_are_checked(api: Api, labels: dict[str, str]) -> None:
    with refused(422, "Invalid") as caught:
        api.create("configmaps", a_config_map(labels=labels))
    assert caught.value.fields == ["metadata.labels"]


def test_every_cause_is_listed(api: Api) -> None:
    body = a_pod()
    body["spec"]["containers"] = [{"name": "A", "image": ""}]
    with refused(422, "Invalid") as caught:
        api.create("pods", body)
    assert {"spec.containers[0].name", "spec.containers[0].image"} <= set(caught.value.fields)
    assert caught.value.status["details"]["kind"] == "Pod"


def test_the_selector_must_match_the_template(api: Api) -> None:
    with refused(422, "Invalid", "`selector` does not match template `labels`"):
        api.create("deployments", a_deployment(selector={"matchLabels": {"app": "other"}}))


def test_defaults_are_filled_in(api: Api) -> None:
    spec = api.create("deployments", a_deployment())["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"}
    assert spec["progressDeadlineSeconds"] == 600
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["dnsPolicy"], pod["terminationGracePeriodSeconds"]) == (
        "Always",
        "ClusterFirst",
        30,
    )
    assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"


@pytest.mark.every_store
def test_creating_twice_is_already_exists(api: Api) -> None:
    api.create("configmaps", a_config_map())
    with refused(409, "AlreadyExists", 'configmaps "cm" already exists') as caught:
        api.create("configmaps", a_config_map())
    assert caught.value.status["details"] == {"name": "cm", "kind": "configmaps"}


def test_a_missing_namespace_is_not_found(api: Api) -> None:
    with refused(404, "NotFound", 'namespaces "no-such" not found'):
        api.send("POST", api.url("configmaps", namespace="no-such"), a_config_map())


def test_an_unknown_content_type_is_refused(api: Api) -> None:
    with refused(415, "UnsupportedMediaType"):
        api.create("configmaps", a_config_map(), type_="text/csv")


@pytest.mark.every_store
def test_dry_run_stores_nothing(api: Api) -> None:
    answer = api.create("configmaps", a_config_map(), dryRun="All")
    assert answer["metadata"]["uid"]
    assert not api.exists("configmaps", "cm")


def test_an_unknown_dry_run_is_refused(api: Api) -> None:
    with refused(422, "Invalid", "dryRun"):
        api.create("configmaps", a_config_map(), dryRun="Some")


def test_yaml_is_taken_and_given(api: Api) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {on: 'yes'}\n"
    answer = api.send("POST", api.url("configmaps"), text, type_="application/yaml", accept="application/yaml")
    assert answer.headers["content-type"] == "application/yaml"
    assert "yes" in answer.text


def test_keys_that_a_list_of_a_pod_names_twice_are_accepted_with_a_warning(api: Api) -> None:
    """Server-side apply refuses such lists, or drops items of them."""
    container = {
        "name": "main",
        "image": "web:1",
        "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        "ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 80, "name": "b", "protocol": "TCP"}],
    }
    aliases = [{"ip": "10.0.0.1", "hostnames": ["a"]}, {"ip": "10.0.0.1", "hostnames": ["b"]}]
    lists = {"imagePullSecrets": [{"name": "x"}, {"name": "x"}], "hostAliases": aliases}
    spec = {"containers": [container], **lists}
    deployment = a_deployment()
    deployment["spec"]["template"]["spec"] = spec
    pod = {**a_pod("twice"), "spec": spec}
    for plural, obj, path in (("deployments", deployment, "spec.template.spec"), ("pods", pod, "spec")):
        answer = api.send("POST", api.url(plural), obj, dryRun="All")
        expected = (
            f'{path}.hostAliases[1].ip: duplicate ip "10.0.0.1"',
            f'{path}.imagePullSecrets[1].name: duplicate name "x"',
            f'{path}.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
            f"{path}.containers[0].ports[1]: duplicate port definition with {path}.containers[0].ports[0]",
        )
        assert answer.headers["warning"] == ", ".join(f"299 - {json.dumps(text)}" for text in expected)
