"""LIST: order, scope, selectors, pages at one revision."""

import orjson
import pytest
from tests.conformance.registry.conftest import Api, a_config_map, a_pod

from federation.apimachinery.errors import BadRequest, Expired, Invalid, Timeout
from federation.apiserver.verbs.requestoptions import ListOptions, ListResult


async def some(api: Api, count: int) -> None:
    for index in range(count):
        await api.create("configmaps", a_config_map(f"c{index}", {"n": str(index), "odd": str(index % 2)}))


async def page(api: Api, **options: object) -> ListResult:
    return await api.registry.list(api.info("configmaps"), "default", ListOptions(**options))  # type: ignore[arg-type]


def names(found: ListResult) -> list[str]:
    return [orjson.loads(value)["metadata"]["name"] for value in found.items]


@pytest.mark.every_store
async def test_a_list_is_ordered_by_namespace_and_name(api: Api) -> None:
    for namespace, name in (("kube-system", "a"), ("default", "b"), ("default", "a")):
        await api.create("configmaps", a_config_map(name), namespace)
    assert await api.names("configmaps", "") == ["a", "b", "a"]
    assert await api.names("configmaps", "default") == ["a", "b"]


@pytest.mark.every_store
async def test_namespaces_with_a_common_name_prefix_are_separate(api: Api) -> None:
    await api.create("namespaces", {"metadata": {"name": "default-2"}})
    await api.create("configmaps", a_config_map(), "default-2")
    assert await api.names("configmaps", "default") == []


@pytest.mark.every_store
async def test_an_empty_list_has_a_revision(api: Api) -> None:
    found = await page(api)
    assert found.items == []
    assert found.resource_version == await api.registry.store.revision()


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("n=1", ["c1"]),
        ("n==1", ["c1"]),
        ("n!=1", ["c0", "c2", "c3"]),
        ("n in (1,2)", ["c1", "c2"]),
        ("n notin (1,2)", ["c0", "c3"]),
        ("n", ["c0", "c1", "c2", "c3"]),
        ("!n", []),
        ("missing notin (a)", ["c0", "c1", "c2", "c3"]),
        ("odd=1,n in (1,2)", ["c1"]),
        ("n>1", ["c2", "c3"]),
        ("n<1", ["c0"]),
        ("", ["c0", "c1", "c2", "c3"]),
    ],
)
async def test_label_selectors(api: Api, selector: str, expected: list[str]) -> None:
    await some(api, 4)
    assert await api.names("configmaps", label_selector=selector) == expected


@pytest.mark.parametrize("selector", ["a=b=c", "in (x)", "a in", "a in (b", "a b", "=x", "a!b", "a in (b c)"])
async def test_a_broken_label_selector_is_a_bad_request(api: Api, selector: str) -> None:
    with pytest.raises(BadRequest, match="unable to parse requirement"):
        await page(api, label_selector=selector)


async def test_the_name_is_a_field(api: Api) -> None:
    await some(api, 3)
    assert await api.names("configmaps", field_selector="metadata.name=c1") == ["c1"]
    assert await api.names("configmaps", field_selector="metadata.name!=c1") == ["c0", "c2"]
    assert await api.names("configmaps", field_selector="metadata.name=nope") == []
    assert await api.names("configmaps", field_selector="metadata.name=c1,metadata.name=c2") == []


async def test_the_name_as_a_field_works_across_namespaces(api: Api) -> None:
    await some(api, 2)
    await api.create("configmaps", a_config_map("c1"), "kube-system")
    assert await api.names("configmaps", "", field_selector="metadata.name=c1") == ["c1", "c1"]
    assert await api.names("configmaps", "", field_selector="metadata.namespace=kube-system") == ["c1"]


@pytest.mark.every_store
async def test_a_name_is_not_the_beginning_of_a_name(api: Api) -> None:
    await api.create("configmaps", a_config_map("c10"))
    assert await api.names("configmaps", field_selector="metadata.name=c1") == []


async def test_pods_are_selected_by_node_and_phase(api: Api) -> None:
    await api.create("pods", a_pod("a", nodeName="n1"))
    await api.create("pods", a_pod("b"))
    assert await api.names("pods", field_selector="spec.nodeName=n1") == ["a"]
    assert await api.names("pods", field_selector="spec.nodeName=") == ["b"]
    assert await api.names("pods", field_selector="status.phase=Pending,spec.nodeName!=n1") == ["b"]


async def test_events_are_selected_by_their_involved_object(api: Api) -> None:
    for name in ("a", "b"):
        event = {"metadata": {"name": name}, "involvedObject": {"kind": "Pod", "name": name}, "type": "Normal"}
        await api.create("events", event)
    selector = "involvedObject.kind=Pod,involvedObject.name=a,type=Normal"
    assert await api.names("events", field_selector=selector) == ["a"]


async def test_an_unknown_field_is_a_bad_request(api: Api) -> None:
    with pytest.raises(
        BadRequest,
        match=r'"spec\.nodeName" is not a known field selector: only "metadata\.name", "metadata\.namespace"',
    ):
        await page(api, field_selector="spec.nodeName=x")


@pytest.mark.every_store
async def test_pages_add_up_to_the_list(api: Api) -> None:
    await some(api, 5)
    first = await page(api, limit=2)
    assert (names(first), first.remaining) == (["c0", "c1"], 3)
    second = await page(api, limit=2, continue_token=first.continue_token)
    assert (names(second), second.remaining) == (["c2", "c3"], 1)
    last = await page(api, limit=2, continue_token=second.continue_token)
    assert (names(last), last.continue_token, last.remaining) == (["c4"], "", 0)


@pytest.mark.every_store
async def test_pages_are_of_one_revision(api: Api) -> None:
    await some(api, 3)
    first = await page(api, limit=1)
    await api.create("configmaps", a_config_map("c00"))
    await api.delete("configmaps", "c2")
    rest = await page(api, continue_token=first.continue_token)
    assert names(rest) == ["c1", "c2"]
    assert rest.resource_version == first.resource_version


@pytest.mark.every_store
async def test_a_page_with_a_selector_is_filled(api: Api) -> None:
    await some(api, 6)
    first = await page(api, limit=2, label_selector="odd=1")
    assert names(first) == ["c1", "c3"]
    assert names(await page(api, limit=2, label_selector="odd=1", continue_token=first.continue_token)) == ["c5"]


@pytest.mark.every_store
async def test_a_compacted_page_offers_an_inconsistent_way_on(api: Api) -> None:
    await some(api, 3)
    first = await page(api, limit=1)
    await api.create("configmaps", a_config_map("c9"))
    await api.registry.store.compact(await api.registry.store.revision())
    with pytest.raises(Expired) as caught:
        await page(api, limit=1, continue_token=first.continue_token)
    status = caught.value.to_status()
    assert (status["code"], status["reason"]) == (410, "Expired")
    rest = await page(api, continue_token=status["metadata"]["continue"])
    assert names(rest) == ["c1", "c2", "c9"]


@pytest.mark.parametrize("token", ["garbage", "e30", "!!!"])
async def test_a_broken_token_is_a_bad_request(api: Api, token: str) -> None:
    with pytest.raises(BadRequest, match="continue key is not valid"):
        await page(api, continue_token=token)


async def test_a_token_of_another_list_is_a_bad_request(api: Api) -> None:
    await some(api, 2)
    token = (await page(api, limit=1)).continue_token
    with pytest.raises(BadRequest, match="belongs to another list"):
        await api.registry.list(api.info("secrets"), "default", ListOptions(continue_token=token))


@pytest.mark.every_store
async def test_an_exact_revision_shows_the_past(api: Api) -> None:
    await some(api, 2)
    then = (await page(api)).resource_version
    await api.delete("configmaps", "c0")
    found = await page(api, resource_version=str(then), resource_version_match="Exact")
    assert names(found) == ["c0", "c1"]


@pytest.mark.every_store
async def test_not_older_than_shows_the_newest(api: Api) -> None:
    await some(api, 2)
    then = (await page(api)).resource_version
    await api.delete("configmaps", "c0")
    found = await page(api, resource_version=str(then), resource_version_match="NotOlderThan")
    assert names(found) == ["c1"]


@pytest.mark.every_store
async def test_a_revision_of_the_future_is_too_large(api: Api) -> None:
    with pytest.raises(Timeout, match="Too large resource version: 99999, current:"):
        await page(api, resource_version="99999")


@pytest.mark.parametrize(
    "options",
    [
        {"resource_version_match": "Exact"},
        {"resource_version_match": "Sometimes", "resource_version": "1"},
        {"resource_version_match": "Exact", "resource_version": "0"},
    ],
    ids=str,
)
async def test_a_match_that_does_not_fit_the_revision_is_invalid(api: Api, options: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="resourceVersionMatch"):
        await page(api, **options)


@pytest.mark.parametrize("text", ["x", "-1", "+1", " 1", "1_0", "1.0", "\u0663", "9" * 30, "9" * 5000])
async def test_a_resource_version_is_a_plain_number(api: Api, text: str) -> None:
    with pytest.raises(BadRequest, match="resourceVersion: Invalid value"):
        await page(api, resource_version=text)
