"""Mutating and validating webhooks: matching, changes, denials and failures."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import orjson
import pytest
import pytest_asyncio
from tests.conformance.registry.conftest import (
    APPLY,
    Api,
    a_config_map,
    a_definition,
    a_deployment,
    a_pod,
    a_widget,
    copied,
)
from tests.support.stores import StoreBackend

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import ApiError, BadRequest, Forbidden, InternalError, WebhookFailed
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import RegistryOptions

Object = dict[str, Any]


def me() -> Object:
    return {"username": "me", "groups": ["dev"]}


class Desk:
    """A caller in process: by URL, a function from the review's request to the response."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[Object], Object]] = {}
        self.asked: list[tuple[str, Object]] = []

    async def call(self, client_config: Mapping[str, Any], review: Object, *, timeout_s: float) -> Any:
        url, request = client_config["url"], copied(review["request"])
        self.asked.append((url, request))
        if url not in self.answers:
            raise WebhookFailed("nobody is there")
        response = {"uid": request["uid"], "allowed": True, **self.answers[url](request)}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

    def urls(self) -> list[str]:
        return [url for url, _ in self.asked]


@pytest_asyncio.fixture
async def desk() -> Desk:
    return Desk()


@pytest_asyncio.fixture
async def api(backend: StoreBackend, desk: Desk) -> AsyncIterator[Api]:
    clock = ManualClock()
    registry = Registry(
        await backend.open(), clock=clock, options=RegistryOptions(), entropy=SeededEntropy(1), webhooks=desk
    )
    await registry.start()
    yield Api(registry, clock)


CONFIG_MAPS = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


def a_webhook(name: str = "one", **fields: Any) -> Object:
    return {
        "name": f"{name}.example.com",
        "clientConfig": {"url": f"https://{name}"},
        "rules": [CONFIG_MAPS],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


async def configure(api: Api, kind: str, *webhooks: Object, name: str = "hooks") -> None:
    await api.create(
        f"{kind.lower()}webhookconfigurations",
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": list(webhooks),
        },
        user=me,
    )


def patching(*operations: Object, **more: Any) -> Callable[[Object], Object]:
    patch = base64.b64encode(orjson.dumps(list(operations))).decode()
    return lambda request: {"patchType": "JSONPatch", "patch": patch, **more}


def label(name: str, value: str = "x") -> Object:
    return {"op": "add", "path": "/metadata/labels", "value": {name: value}}


def deny(request: Object) -> Object:
    return {"allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": "not here"}}


async def test_a_denial_names_the_webhook_and_nothing_is_stored(api: Api, desk: Desk) -> None:
    desk.answers["https://one"] = deny
    await configure(api, "Validating", a_webhook())
    with pytest.raises(Forbidden) as caught:
        await api.create("configmaps", a_config_map(), user=me)
    assert caught.value.message == 'admission webhook "one.example.com" denied the request: not here'
    assert not await api.exists("configmaps", "cm")


async def test_a_denial_without_words_is_a_bad_request(api: Api, desk: Desk) -> None:
    desk.answers["https://one"] = lambda request: {"allowed": False}
    await configure(api, "Validating", a_webhook())
    with pytest.raises(BadRequest, match="denied the request without explanation"):
        await api.create("configmaps", a_config_map(), user=me)


async def test_the_review_carries_user_and_operation(api: Api, desk: Desk) -> None:
    desk.answers["https://one"] = lambda request: {}
    await configure(api, "Validating", a_webhook())
    await api.create("configmaps", a_config_map(), user=me)
    await api.patch("configmaps", "cm", {"data": {"k": "w"}}, user=me)
    await api.delete("configmaps", "cm", user=me)
    created, updated, deleted = (request for _, request in desk.asked)
    assert (created["operation"], updated["operation"], deleted["operation"]) == ("CREATE", "UPDATE", "DELETE")
    assert created["userInfo"] == {"username": "me", "groups": ["dev"]}
    assert (created["namespace"], created["name"], created["dryRun"]) == ("default", "cm", False)
    assert created["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert created["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert created["object"]["metadata"]["uid"]
    assert created["oldObject"] is None
    assert (updated["oldObject"]["data"], updated["object"]["data"]) == ({"k": "v"}, {"k": "w"})
    assert deleted["object"] is None
    assert deleted["oldObject"]["data"] == {"k": "w"}


async def test_a_denied_deletion_leaves_the_object(api: Api, desk: Desk) -> None:
    await configure(api, "Validating", a_webhook(rules=[{**CONFIG_MAPS, "operations": ["DELETE"]}]))
    desk.answers["https://one"] = deny
    await api.create("configmaps", a_config_map(), user=me)
    with pytest.raises(Forbidden):
        await api.delete("configmaps", "cm", user=me)
    assert await api.exists("configmaps", "cm")


async def test_patches_are_stored_and_seen_by_the_next_webhook(api: Api, desk: Desk) -> None:
    desk.answers["https://one"] = patching(label("first"))
    desk.answers["https://two"] = patching({"op": "add", "path": "/metadata/labels/second", "value": "y"})
    await configure(api, "Mutating", a_webhook("two"), name="b")
    await configure(api, "Mutating", a_webhook("one"), name="a")
    made = await api.create("configmaps", a_config_map(), user=me)
    assert made["metadata"]["labels"] == {"first": "x", "second": "y"}
    assert desk.urls() == ["https://one", "https://two"]


async def test_updates_and_applies_are_mutated_too(api: Api, desk: Desk) -> None:
    await api.create("configmaps", a_config_map())
    desk.answers["https://one"] = patching(label("seen"))
    await configure(api, "Mutating", a_webhook())
    changed = await api.patch("configmaps", "cm", {"data": {"k": "w"}}, user=me)
    assert (changed["data"], changed["metadata"]["labels"]) == ({"k": "w"}, {"seen": "x"})
    applied = await api.patch("configmaps", "new", a_config_map("new"), type_=APPLY, field_manager="m", user=me)
    assert applied["metadata"]["labels"] == {"seen": "x"}


async def test_mutation_comes_before_validation(api: Api, desk: Desk) -> None:
    await api.create("customresourcedefinitions", a_definition())
    widgets = {**CONFIG_MAPS, "apiGroups": ["example.com"], "resources": ["widgets"]}
    desk.answers["https://one"] = patching({"op": "add", "path": "/spec/size", "value": 5})
    await configure(api, "Mutating", a_webhook(rules=[widgets]))
    made = await api.create("widgets", {**a_widget(), "spec": {}}, user=me)
    assert made["spec"] == {"size": 5, "color": "red"}
    desk.answers["https://one"] = patching({"op": "add", "path": "/spec/size", "value": 0})
    with pytest.raises(ApiError, match="should be greater than or equal to 1"):
        await api.create("widgets", a_widget("v"), user=me)


async def test_a_webhook_is_reinvoked_after_another_s_change(api: Api, desk: Desk) -> None:
    desk.answers["https://one"] = lambda request: {}
    desk.answers["https://two"] = patching(label("late"))
    await configure(api, "Mutating", a_webhook("one", reinvocationPolicy="IfNeeded"), a_webhook("two"))
    await api.create("configmaps", a_config_map(), user=me)
    assert desk.urls() == ["https://one", "https://two", "https://one"]
    assert desk.asked[2][1]["object"]["metadata"]["labels"] == {"late": "x"}


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: {"uid": "other"},
        lambda request: {"allowed": "yes"},
        lambda request: {"patch": "e30=", "patchType": "Odd"},
        lambda request: {"patch": "not base64", "patchType": "JSONPatch"},
        patching({"op": "remove", "path": "/nothing"}),
        patching({"op": "replace", "path": "", "value": 3}),
    ],
    ids=["wrong uid", "no decision", "unknown patch type", "no base64", "patch does not fit", "no object left"],
)
async def test_a_broken_answer_is_a_failed_call(api: Api, desk: Desk, answer: Callable[[Object], Object]) -> None:
    desk.answers["https://one"] = answer
    await configure(api, "Mutating", a_webhook())
    with pytest.raises(InternalError, match=r'failed calling webhook "one\.example\.com": failed to call webhook'):
        await api.create("configmaps", a_config_map(), user=me)


async def test_the_failure_policy_decides_about_a_webhook_that_does_not_answer(api: Api, desk: Desk) -> None:
    await configure(api, "Validating", a_webhook("gone", failurePolicy="Ignore"))
    await api.create("configmaps", a_config_map(), user=me)
    await configure(api, "Validating", a_webhook("away"), name="strict")
    with pytest.raises(InternalError, match="nobody is there"):
        await api.create("configmaps", a_config_map("other"), user=me)


async def test_webhooks_cannot_deny_the_removal_of_configurations(api: Api) -> None:
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    await configure(api, "Validating", a_webhook("away", rules=[everything]))
    await api.delete("validatingwebhookconfigurations", "hooks", user=me)
    await api.create("configmaps", a_config_map(), user=me)


async def test_the_registry_s_own_writes_skip_webhooks(api: Api, desk: Desk) -> None:
    await configure(api, "Validating", a_webhook("away"))
    await api.create("configmaps", a_config_map())
    assert desk.asked == []


@pytest.mark.parametrize(
    ("fields", "is_concerned"),
    [
        ({"rules": [{**CONFIG_MAPS, "operations": ["UPDATE"]}]}, False),
        ({"rules": [{**CONFIG_MAPS, "resources": ["*"]}]}, True),
        ({"rules": [{**CONFIG_MAPS, "resources": ["configmaps/status"]}]}, False),
        ({"rules": [{**CONFIG_MAPS, "apiGroups": ["apps"]}]}, False),
        ({"rules": [{**CONFIG_MAPS, "scope": "Cluster"}]}, False),
        ({"objectSelector": {"matchLabels": {"app": "a"}}}, True),
        ({"objectSelector": {"matchLabels": {"app": "b"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"matchConditions": [{"name": "c", "expression": "object.data.k == 'v'"}]}, True),
        ({"matchConditions": [{"name": "c", "expression": "request.userInfo.username != 'me'"}]}, False),
        ({"matchConditions": [{"name": "c", "expression": "object.no == 1"}], "failurePolicy": "Ignore"}, False),
    ],
    ids=[
        "other operation",
        "all resources",
        "subresource",
        "other group",
        "other scope",
        "object selected",
        "object not selected",
        "namespace selected",
        "namespace not selected",
        "condition true",
        "condition false",
        "condition broken and ignored",
    ],
)
async def test_a_webhook_is_called_only_for_matching_requests(
    api: Api, desk: Desk, fields: Object, *, is_concerned: bool
) -> None:
    desk.answers["https://one"] = lambda request: {}
    await configure(api, "Validating", a_webhook(**fields))
    await api.create("configmaps", a_config_map(labels={"app": "a"}), user=me)
    assert bool(desk.asked) is is_concerned


async def test_a_condition_without_a_value_refuses_under_fail(api: Api) -> None:
    await configure(api, "Validating", a_webhook(matchConditions=[{"name": "c", "expression": "object.no == 1"}]))
    with pytest.raises(Forbidden, match=r"expression 'object\.no == 1' resulted in error: no such key: no"):
        await api.create("configmaps", a_config_map(), user=me)


async def test_warnings_reach_the_writer(api: Api, desk: Desk) -> None:
    desk.answers["https://one"] = lambda request: {"warnings": ["old style"]}
    await configure(api, "Validating", a_webhook())
    warnings: list[str] = []
    await api.create("configmaps", a_config_map(), user=me, warnings=warnings)
    assert warnings == ["old style"]


async def test_a_dry_run_reaches_the_webhook_and_stores_nothing(api: Api, desk: Desk) -> None:
    desk.answers["https://one"] = lambda request: {}
    await configure(api, "Validating", a_webhook(sideEffects="NoneOnDryRun"))
    await api.create("configmaps", a_config_map(), user=me, dry_run=True)
    assert desk.asked[0][1]["dryRun"] is True
    assert desk.asked[0][1]["options"]["dryRun"] == ["All"]
    assert not await api.exists("configmaps", "cm")


async def test_a_scale_is_shown_as_a_scale(api: Api, desk: Desk) -> None:
    await api.create("deployments", a_deployment())
    scales = {**CONFIG_MAPS, "apiGroups": ["apps"], "resources": ["deployments/scale"]}
    desk.answers["https://one"] = lambda request: {"allowed": request["object"]["spec"]["replicas"] < 5}
    await configure(api, "Validating", a_webhook(rules=[scales]))
    await api.patch("deployments", "web", {"spec": {"replicas": 2}}, subresource="scale", user=me)
    assert desk.asked[0][1]["kind"]["kind"] == "Scale"
    with pytest.raises(BadRequest):
        await api.patch("deployments", "web", {"spec": {"replicas": 9}}, subresource="scale", user=me)


async def test_a_scale_can_be_changed_by_a_webhook(api: Api, desk: Desk) -> None:
    await api.create("deployments", a_deployment())
    scales = {**CONFIG_MAPS, "apiGroups": ["apps"], "resources": ["deployments/scale"]}
    desk.answers["https://one"] = patching({"op": "replace", "path": "/spec/replicas", "value": 4})
    await configure(api, "Mutating", a_webhook(rules=[scales]))
    scaled = await api.patch("deployments", "web", {"spec": {"replicas": 9}}, subresource="scale", user=me)
    assert scaled["spec"]["replicas"] == 4
    assert (await api.get("deployments", "web"))["spec"]["replicas"] == 4


async def test_webhooks_get_evictions_and_bindings_as_posted(api: Api, desk: Desk) -> None:
    pods = {**CONFIG_MAPS, "resources": ["pods/eviction", "pods/binding", "pods"]}
    desk.answers["https://one"] = lambda request: {}
    await api.create("pods", a_pod())
    await configure(api, "Validating", a_webhook(rules=[pods]))
    await api.create("pods", {"target": {"name": "n"}}, name="p", subresource="binding", user=me)
    desk.answers["https://one"] = deny
    with pytest.raises(Forbidden):
        await api.create("pods", {"metadata": {"name": "p"}}, name="p", subresource="eviction", user=me)
    assert await api.exists("pods", "p")
    (bound, evicted) = (request for _, request in desk.asked)
    assert (bound["operation"], bound["subResource"], bound["kind"]["kind"]) == ("CREATE", "binding", "Binding")
    assert (bound["name"], bound["object"]["target"]) == ("p", {"name": "n"})
    assert evicted["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


async def test_a_webhook_can_annotate_the_audit_log(api: Api, desk: Desk) -> None:
    desk.answers["https://one"] = lambda request: {"auditAnnotations": {"seen": "yes"}}
    await configure(api, "Validating", a_webhook())
    annotations: dict[str, str] = {}
    await api.create("configmaps", a_config_map(), user=me, audit_annotations=annotations)
    assert annotations == {"one.example.com/seen": "yes"}


async def test_an_equivalent_webhook_sees_every_version_in_its_own(api: Api, desk: Desk) -> None:
    definition = a_definition()
    (version,) = definition["spec"]["versions"]
    definition["spec"]["versions"].append({**version, "name": "v2", "storage": False})
    await api.create("customresourcedefinitions", definition)
    rule = {**CONFIG_MAPS, "apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["widgets"]}
    desk.answers["https://one"] = patching({"op": "add", "path": "/spec/color", "value": "blue"})
    await configure(api, "Mutating", a_webhook(rules=[rule]), a_webhook("exact", rules=[rule], matchPolicy="Exact"))
    made = await api.create("widgets", a_widget(), user=me)
    ((url, request),) = desk.asked
    assert (url, request["object"]["apiVersion"], request["requestKind"]["version"]) == (
        "https://one",
        "example.com/v2",
        "v1",
    )
    assert (made["apiVersion"], made["spec"]["color"]) == ("example.com/v1", "blue")


@pytest.mark.every_store
async def test_configurations_of_another_process_take_effect(api: Api, desk: Desk) -> None:
    desk.answers["https://one"] = deny
    clock = ManualClock()
    registry = Registry(api.registry.store, clock=clock, options=RegistryOptions(), webhooks=desk)
    other = Api(registry, clock)
    task = asyncio.create_task(registry.run())
    await other.eventually(lambda: other.exists("namespaces", "default"))
    await configure(api, "Validating", a_webhook())

    async def is_denied() -> bool:
        try:
            await other.create("configmaps", a_config_map(generateName="x-", name=None), user=me)
        except Forbidden:
            return True
        return False

    await other.eventually(is_denied)
    await api.delete("validatingwebhookconfigurations", "hooks")

    async def is_allowed() -> bool:
        return not await is_denied()

    await other.eventually(is_allowed)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
