"""The contract of `Client`, over the local and the HTTPS transport."""

import asyncio
import contextlib
from typing import Any

import orjson
import pytest

from federation.api import names
from federation.apimachinery.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    ClusterUnreachable,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
)
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CONFIGMAPS,
    DEPLOYMENTS,
    NAMESPACES,
    Resource,
)
from federation.client.client import Client, PatchType, WatchEvent, WatchEventType


def a_configmap(name: str = "settings", labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "shop"}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def a_deployment(replicas: int = 3) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
            },
        },
    }


async def follow(client: Client, since: str, wanted: int, **selection: str) -> list[WatchEvent]:
    """Return the first `wanted` changes after a revision, bookmarks left out."""
    found: list[WatchEvent] = []
    async with asyncio.timeout(60):
        async for batch in client.watch(CONFIGMAPS, "shop", resource_version=since, **selection):
            found += [event for event in batch if event.type is not WatchEventType.BOOKMARK]
            if len(found) >= wanted:
                break
    return found


async def test_a_created_object_can_be_read(client: Client) -> None:
    created = await client.create(CONFIGMAPS, a_configmap(color="blue"))
    assert created["metadata"]["uid"]
    assert created["metadata"]["resourceVersion"].isdecimal()
    assert await client.get(CONFIGMAPS, "settings", "shop") == created


async def test_the_callers_object_is_not_changed(client: Client) -> None:
    mine = a_deployment()
    before = orjson.dumps(mine)
    created = await client.create(DEPLOYMENTS, mine)
    assert orjson.dumps(mine) == before
    created["spec"]["replicas"] = 99
    assert (await client.get(DEPLOYMENTS, "web", "shop"))["spec"]["replicas"] == 3


async def test_creating_twice_is_already_exists(client: Client) -> None:
    await client.create(CONFIGMAPS, a_configmap())
    with pytest.raises(AlreadyExists) as caught:
        await client.create(CONFIGMAPS, a_configmap())
    assert caught.value.code == 409
    assert caught.value.details["name"] == "settings"


async def test_a_missing_object_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound) as caught:
        await client.get(CONFIGMAPS, "nothing", "shop")
    assert caught.value.message == 'configmaps "nothing" not found'


async def test_a_kind_that_is_not_served_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound):
        await client.list(Resource("example.com", "v1", "Thing", "things"))


async def test_an_invalid_object_names_the_field(client: Client) -> None:
    wrong = a_deployment(replicas=-1)
    with pytest.raises(Invalid) as caught:
        await client.create(DEPLOYMENTS, wrong)
    assert [cause["field"] for cause in caught.value.details["causes"]] == ["spec.replicas"]


async def test_a_stale_update_is_a_conflict(client: Client) -> None:
    created = await client.create(CONFIGMAPS, a_configmap(color="blue"))
    await client.update(CONFIGMAPS, {**created, "data": {"color": "red"}})
    with pytest.raises(Conflict):
        await client.update(CONFIGMAPS, {**created, "data": {"color": "green"}})
    assert (await client.get(CONFIGMAPS, "settings", "shop"))["data"] == {"color": "red"}


async def test_a_status_update_changes_only_the_status(client: Client) -> None:
    created = await client.create(DEPLOYMENTS, a_deployment())
    changed = {**created, "spec": {**created["spec"], "replicas": 9}, "status": {"replicas": 2}}
    updated = await client.update(DEPLOYMENTS, changed, subresource="status")
    assert updated["status"]["replicas"] == 2
    assert updated["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("patch_type", "body"),
    [
        (PatchType.MERGE, {"spec": {"replicas": 5}}),
        (PatchType.STRATEGIC, {"spec": {"replicas": 5}}),
        (PatchType.JSON, [{"op": "replace", "path": "/spec/replicas", "value": 5}]),
        (PatchType.MERGE, b'{"spec":{"replicas":5}}'),
    ],
    ids=["merge", "strategic", "json", "bytes"],
)
async def test_a_patch_changes_its_fields_only(client: Client, patch_type: PatchType, body: Any) -> None:
    await client.create(DEPLOYMENTS, a_deployment())
    patched = await client.patch(DEPLOYMENTS, "web", body, patch_type=patch_type, namespace="shop")
    assert patched["spec"]["replicas"] == 5
    assert patched["metadata"]["generation"] == 2


async def test_an_apply_creates_and_then_owns_its_fields(client: Client) -> None:
    async def apply(color: str, manager: str, *, force: bool = False) -> Any:
        return await client.patch(
            CONFIGMAPS,
            "settings",
            a_configmap(color=color),
            patch_type=PatchType.APPLY,
            namespace="shop",
            field_manager=manager,
            force=force,
        )

    await apply("blue", "one")
    with pytest.raises(Conflict) as caught:
        await apply("red", "two")
    assert [cause["field"] for cause in caught.value.details["causes"]] == [".data.color"]
    assert (await apply("red", "two", force=True))["data"] == {"color": "red"}


async def test_deleting_honours_its_preconditions(client: Client) -> None:
    created = await client.create(CONFIGMAPS, a_configmap())
    with pytest.raises(Conflict):
        await client.delete(CONFIGMAPS, "settings", "shop", uid="another")
    with pytest.raises(Conflict):
        await client.delete(CONFIGMAPS, "settings", "shop", resource_version="1")
    await client.delete(CONFIGMAPS, "settings", "shop", uid=created["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.delete(CONFIGMAPS, "settings", "shop")


async def test_list_items_have_api_version_and_kind(client: Client) -> None:
    await client.create(CONFIGMAPS, a_configmap("one"))
    listed = await client.list(CONFIGMAPS, "shop")
    one = next(item for item in listed.items if item["metadata"]["name"] == "one")
    assert (one["apiVersion"], one["kind"]) == ("v1", "ConfigMap")


async def test_pages_add_up_to_the_whole_list(client: Client) -> None:
    for number in range(7):
        await client.create(CONFIGMAPS, a_configmap(f"page-{number}", {"of": "pages"}))
    names: list[str] = []
    token, pages = "", 0
    while True:
        page = await client.list(CONFIGMAPS, "shop", label_selector="of=pages", limit=3, continue_token=token)
        names += [item["metadata"]["name"] for item in page.items]
        token, pages = page.continue_token, pages + 1
        if not token:
            break
    assert names == [f"page-{number}" for number in range(7)]
    assert pages == 3


async def test_selectors_filter_lists(client: Client) -> None:
    await client.create(CONFIGMAPS, a_configmap("one", {"tier": "front"}))
    await client.create(CONFIGMAPS, a_configmap("two", {"tier": "back"}))
    by_label = await client.list(CONFIGMAPS, "shop", label_selector="tier in (back)")
    by_name = await client.list(CONFIGMAPS, "shop", field_selector="metadata.name=one")
    assert [item["metadata"]["name"] for item in by_label.items] == ["two"]
    assert [item["metadata"]["name"] for item in by_name.items] == ["one"]


async def test_a_broken_selector_is_a_bad_request(client: Client) -> None:
    with pytest.raises(BadRequest):
        await client.list(CONFIGMAPS, "shop", label_selector="a in (")


async def test_a_watch_yields_every_change_after_its_start_in_order(client: Client) -> None:
    since = (await client.list(CONFIGMAPS, "shop")).resource_version
    await client.create(CONFIGMAPS, a_configmap(color="blue"))
    await client.patch(CONFIGMAPS, "settings", {"data": {"color": "red"}}, patch_type=PatchType.MERGE, namespace="shop")
    await client.delete(CONFIGMAPS, "settings", "shop")
    events = await follow(client, since, 3)
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event.object["data"]["color"] for event in events] == ["blue", "red", "red"]
    revisions = [int(event.object["metadata"]["resourceVersion"]) for event in events]
    assert revisions == sorted(set(revisions))
    assert revisions[0] > int(since)


async def test_a_watch_begins_with_an_empty_batch(client: Client) -> None:
    since = (await client.list(CONFIGMAPS, "shop")).resource_version
    async with asyncio.timeout(60):
        async for batch in client.watch(CONFIGMAPS, "shop", resource_version=since):
            assert batch == []
            break


async def test_an_object_that_leaves_the_selection_is_deleted(client: Client) -> None:
    created = await client.create(CONFIGMAPS, a_configmap(labels={"tier": "front"}))
    since = created["metadata"]["resourceVersion"]
    patch = {"metadata": {"labels": {"tier": "back"}}}
    await client.patch(CONFIGMAPS, "settings", patch, patch_type=PatchType.MERGE, namespace="shop")
    (event,) = await follow(client, since, 1, label_selector="tier=front")
    assert event.type is WatchEventType.DELETED


async def test_an_idle_watch_receives_bookmarks(client: Client) -> None:
    since = (await client.list(CONFIGMAPS, "shop")).resource_version
    other = await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    async with asyncio.timeout(60):
        async for batch in client.watch(CONFIGMAPS, "shop", resource_version=since):
            reached = [int(event.object["metadata"]["resourceVersion"]) for event in batch]
            if reached and reached[-1] >= int(other["metadata"]["resourceVersion"]):
                assert {event.type for event in batch} == {WatchEventType.BOOKMARK}
                break


async def test_a_watch_ends_after_its_timeout(client: Client) -> None:
    since = (await client.list(CONFIGMAPS, "shop")).resource_version
    async with asyncio.timeout(60):
        async for _ in client.watch(CONFIGMAPS, "shop", resource_version=since, timeout_s=1):
            pass


async def test_a_watch_from_a_compacted_revision_is_expired(client: Client, registry: Any) -> None:
    created = await client.create(CONFIGMAPS, a_configmap())
    for color in ("red", "green"):
        await client.patch(
            CONFIGMAPS, "settings", {"data": {"color": color}}, patch_type=PatchType.MERGE, namespace="shop"
        )
    await registry.store.compact(await registry.store.revision())
    with pytest.raises(Expired):
        await follow(client, created["metadata"]["resourceVersion"], 1)


async def test_a_long_object_comes_through_a_watch_whole(client: Client) -> None:
    since = (await client.list(CONFIGMAPS, "shop")).resource_version
    await client.create(CONFIGMAPS, a_configmap(text="x" * 900_000))
    (event,) = await follow(client, since, 1)
    assert len(event.object["data"]["text"]) == 900_000


async def test_raw_answers_health_version_and_discovery(client: Client) -> None:
    code, body = await client.raw("GET", "/readyz")
    assert (code, body) == (200, b"ok")
    code, body = await client.raw("GET", "/version")
    assert (code, orjson.loads(body)["major"]) == (200, "1")
    code, body = await client.raw("GET", "/apis/apps/v1")
    assert "deployments" in {entry["name"] for entry in orjson.loads(body)["resources"]}
    code, body = await client.raw("GET", "/apis")
    assert "apps" in {group["name"] for group in orjson.loads(body)["groups"]}


async def test_raw_reads_objects_by_path(client: Client) -> None:
    await client.create(CONFIGMAPS, a_configmap("one", {"tier": "front"}))
    code, body = await client.raw("GET", "/api/v1/namespaces/shop/configmaps/one")
    assert (code, orjson.loads(body)["metadata"]["name"]) == (200, "one")
    code, body = await client.raw("GET", "/api/v1/namespaces/shop/configmaps", query={"labelSelector": "tier=front"})
    assert [item["metadata"]["name"] for item in orjson.loads(body)["items"]] == ["one"]


async def test_raw_returns_answers_without_success(client: Client) -> None:
    code, body = await client.raw("GET", "/apis/example.com/v1")
    assert (code, orjson.loads(body)["kind"]) == (404, "Status")


async def test_a_closed_client_refuses(client: Client) -> None:
    await client.close()
    with pytest.raises((ClusterUnreachable, ApiError)):
        await client.get(CONFIGMAPS, "settings", "shop")


RBAC = "rbac.authorization.k8s.io"
REVIEWER = {"username": names.OVERRIDE_POLICY_USER, "groups": ["system:authenticated"]}


async def allow_reviews(client: Client) -> None:
    """Give the reviewer every permission, which a server over HTTP asks for, and wait until the server knows it."""
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "all"}}
    rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    roles = Resource(RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
    await client.create(roles, {**role, "rules": rules})
    binding = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "all"}}
    subjects = [{"kind": "User", "apiGroup": RBAC, "name": REVIEWER["username"]}]
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "all"}
    bindings = Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
    await client.create(bindings, {**binding, "roleRef": reference, "subjects": subjects})
    async with asyncio.timeout(60):
        while True:
            try:
                await client.review(CONFIGMAPS, a_configmap("probe"), user=REVIEWER)
            except Forbidden:
                await asyncio.sleep(0)
                continue
            return


async def test_a_review_stores_nothing_and_tells_what_would_be_stored(client: Client) -> None:
    await allow_reviews(client)
    reviewed = await client.review(DEPLOYMENTS, a_deployment(), user=REVIEWER)
    assert reviewed["spec"]["strategy"]["type"] == "RollingUpdate"  # a default
    with pytest.raises(NotFound):
        await client.get(DEPLOYMENTS, "web", "default")
    broken = a_deployment()
    broken["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    with pytest.raises(Invalid, match="selector"):
        await client.review(DEPLOYMENTS, broken, user=REVIEWER)


async def test_a_review_of_a_taken_name_ends_after_admission(client: Client) -> None:
    """In process it answers; over HTTP the name is the last problem that an API server finds."""
    await allow_reviews(client)
    await client.create(CONFIGMAPS, a_configmap())
    with contextlib.suppress(AlreadyExists):
        await client.review(CONFIGMAPS, a_configmap(), user=REVIEWER)
    broken = {**a_configmap(), "immutable": "yes"}
    with pytest.raises((Invalid, BadRequest)):
        await client.review(CONFIGMAPS, broken, user=REVIEWER)


async def test_admission_of_a_review_sees_its_user(client: Client) -> None:
    await allow_reviews(client)
    spec = {
        "matchConstraints": {
            "resourceRules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
            ]
        },
        "validations": [{"expression": "false", "messageExpression": "request.userInfo.username"}],
    }
    group = "admissionregistration.k8s.io/v1"
    policy = {"apiVersion": group, "kind": ADMISSION_POLICIES.kind, "metadata": {"name": "no"}, "spec": spec}
    await client.create(ADMISSION_POLICIES, policy)
    bound = {"policyName": "no", "validationActions": ["Deny"]}
    binding = {"apiVersion": group, "kind": ADMISSION_POLICY_BINDINGS.kind, "metadata": {"name": "no"}, "spec": bound}
    await client.create(ADMISSION_POLICY_BINDINGS, binding)
    with pytest.raises(ApiError, match=f"denied request: {REVIEWER['username']}"):
        await client.review(CONFIGMAPS, a_configmap(), user=REVIEWER)
