"""Conformance area: chunking and consistent lists."""

import pytest
from tests.conformance.apiserver.objects import TEMPLATE, a_config_map, a_pod, a_service, a_spec
from tests.support.rest import Api, refused

TLS = {"tls.crt": "", "tls.key": ""}


@pytest.fixture
def ten(api: Api) -> Api:
    for number in range(10):
        parity = "even" if number % 2 == 0 else "odd"
        api.create("configmaps", a_config_map(f"cm-{number}", {"test": "1", "parity": parity}))
    return api


@pytest.mark.every_store
def test_pages_add_up_to_the_list(ten: Api) -> None:
    """[sig-api-machinery] Servers with support for API chunking should return chunks of results for list calls."""
    names, token = [], ""
    while True:
        page = ten.list("configmaps", limit=3, labelSelector="test", **{"continue": token})
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
        assert len(page["items"]) == 3
    assert names == [f"cm-{number}" for number in range(10)]


@pytest.mark.every_store
def test_pages_are_of_one_revision(ten: Api) -> None:
    first = ten.list("configmaps", limit=4, fieldSelector="metadata.name!=kube-root-ca.crt")
    ten.delete("configmaps", "cm-7")
    ten.create("configmaps", a_config_map("cm-55"))
    query = {"fieldSelector": "metadata.name!=kube-root-ca.crt", "continue": first["metadata"]["continue"]}
    rest = ten.list("configmaps", **query)
    assert [item["metadata"]["name"] for item in rest["items"]] == [f"cm-{number}" for number in range(4, 10)]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


@pytest.mark.every_store
def test_the_remaining_count_is_returned_without_a_selector(ten: Api) -> None:
    total = len(ten.names("configmaps"))
    assert ten.list("configmaps", limit=4)["metadata"]["remainingItemCount"] == total - 4


@pytest.mark.every_store
def test_the_last_page_has_neither_token_nor_count(ten: Api) -> None:
    metadata = ten.list("configmaps", limit=100)["metadata"]
    assert not metadata.get("continue")
    assert "remainingItemCount" not in metadata


@pytest.mark.every_store
def test_a_page_with_a_selector_is_filled(ten: Api) -> None:
    page = ten.list("configmaps", limit=3, labelSelector="parity=odd")
    assert [item["metadata"]["name"] for item in page["items"]] == ["cm-1", "cm-3", "cm-5"]


def test_a_broken_token_is_refused(ten: Api) -> None:
    with refused(400, "BadRequest", "continue"):
        ten.list("configmaps", limit=3, **{"continue": "nonsense"})


def test_a_token_and_a_revision_exclude_each_other(ten: Api) -> None:
    token = ten.list("configmaps", limit=3)["metadata"]["continue"]
    with refused(400, "BadRequest"):
        ten.list("configmaps", resourceVersion="1", **{"continue": token})


def test_a_list_has_kind_and_revision(api: Api) -> None:
    listed = api.list("secrets")
    assert (listed["kind"], listed["apiVersion"]) == ("SecretList", "v1")
    assert listed["metadata"]["resourceVersion"].isdecimal()


@pytest.mark.every_store
def test_an_exact_revision_shows_the_past(ten: Api) -> None:
    before = ten.list("configmaps")["metadata"]["resourceVersion"]
    ten.delete("configmaps", "cm-3")
    query = {"resourceVersion": before, "resourceVersionMatch": "Exact", "labelSelector": "test"}
    past = ten.list("configmaps", **query)
    assert "cm-3" in [item["metadata"]["name"] for item in past["items"]]
    assert past["metadata"]["resourceVersion"] == before


@pytest.mark.every_store
def test_not_older_than_shows_at_least_that(ten: Api) -> None:
    created = ten.create("configmaps", a_config_map("new"))["metadata"]["resourceVersion"]
    listed = ten.list("configmaps", resourceVersion=created, resourceVersionMatch="NotOlderThan")
    assert "new" in [item["metadata"]["name"] for item in listed["items"]]
    assert int(listed["metadata"]["resourceVersion"]) >= int(created)


def test_revision_zero_is_any_revision(ten: Api) -> None:
    assert ten.list("configmaps", resourceVersion="0")["kind"] == "ConfigMapList"


def test_a_match_needs_a_revision(api: Api) -> None:
    with refused(422, "Invalid", "resourceVersionMatch is forbidden unless resourceVersion is provided"):
        api.list("configmaps", resourceVersionMatch="Exact")


def test_an_unknown_match_is_refused(api: Api) -> None:
    with refused(422, "Invalid", "resourceVersionMatch"):
        api.list("configmaps", resourceVersion="1", resourceVersionMatch="Nearly")


def test_exact_zero_is_refused(api: Api) -> None:
    with refused(422, "Invalid"):
        api.list("configmaps", resourceVersion="0", resourceVersionMatch="Exact")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("parity=even,test=1", 5),
        ("parity!=even", 5),
        ("parity in (even,odd)", 10),
        ("parity notin (odd),test", 5),
        ("!parity,test", 0),
        ("parity,test==1", 10),
    ],
)
def test_label_selectors(ten: Api, selector: str, expected: int) -> None:
    names = [name for name in ten.names("configmaps", labelSelector=selector) if name.startswith("cm-")]
    assert len(names) == expected


def test_pods_are_selected_by_field(api: Api) -> None:
    api.create("pods", a_pod("a"))
    assert api.names("pods", fieldSelector="status.phase=Pending,spec.schedulerName=nobody") == ["a"]
    assert api.names("pods", fieldSelector="spec.nodeName=elsewhere") == []


def test_an_unknown_field_is_refused(api: Api) -> None:
    with refused(400, "BadRequest", "field label not supported: data.k"):
        api.list("secrets", fieldSelector="data.k=v")
    with refused(400, "BadRequest", 'field label "spec.suspend" not supported for Job'):
        api.list("jobs", fieldSelector="spec.suspend=true")


@pytest.mark.parametrize("plural", ["configmaps", "replicasets", "deployments", "roles", "customresourcedefinitions"])
def test_most_kinds_are_selected_by_name_and_namespace_only(api: Api, plural: str) -> None:
    text = '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"'
    with refused(400, "BadRequest", text):
        api.list(plural, fieldSelector="status.replicas=0")
    namespace = "" if plural == "customresourcedefinitions" else api.namespace
    assert api.names(plural, fieldSelector=f"metadata.name=none,metadata.namespace={namespace}") == []


@pytest.mark.parametrize(
    ("query", "field", "text"),
    [
        (
            {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1", "continue": "x"},
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden when continue is provided",
        ),
        ({"sendInitialEvents": "true"}, "sendInitialEvents", "sendInitialEvents is forbidden for list"),
        (
            {"watch": "1", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            {"watch": "1", "sendInitialEvents": "true", "resourceVersionMatch": "Exact", "resourceVersion": "1"},
            "resourceVersionMatch",
            'Unsupported value: "Exact": supported values: "NotOlderThan"',
        ),
    ],
)
def test_options_that_exclude_each_other_are_refused(api: Api, query: dict[str, str], field: str, text: str) -> None:
    with refused(422, "Invalid", text) as caught:
        api.list("configmaps", **query)
    assert field in caught.value.fields


@pytest.mark.every_store
def test_one_object_is_read_not_older_than_a_revision(api: Api) -> None:
    created = api.create("configmaps", a_config_map())
    assert api.get("configmaps", "cm", resourceVersion=created["metadata"]["resourceVersion"]) == created
    assert api.get("configmaps", "cm", resourceVersion="0")["metadata"]["name"] == "cm"
    with refused(504, "Timeout", "Too large resource version") as caught:
        api.get("configmaps", "cm", resourceVersion=str(int(created["metadata"]["resourceVersion"]) + 1_000_000))
    assert caught.value.causes[0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    ("plural", "selector", "found"),
    [
        ("pods", "spec.restartPolicy=Always,status.phase!=Running", ["p"]),
        ("pods", "spec.schedulerName=nobody,spec.serviceAccountName=default", ["p"]),
        ("secrets", "type=kubernetes.io/tls", ["tls"]),
        ("v1/replicationcontrollers", "status.replicas=0", ["rc"]),
        ("jobs", "status.successful=0", ["j"]),
        ("services", "spec.type=NodePort", []),
        ("configmaps", "metadata.name!=kube-root-ca.crt,metadata.name!=cm", []),
    ],
)
def test_every_kind_has_its_fields(api: Api, plural: str, selector: str, found: list[str]) -> None:
    api.create("pods", a_pod())
    api.create("configmaps", a_config_map())
    api.create("services", a_service())
    api.create("secrets", {"metadata": {"name": "tls"}, "type": "kubernetes.io/tls", "data": TLS})
    controller = {"replicas": 0, "selector": {"a": "b"}, "template": TEMPLATE}
    api.create("v1/replicationcontrollers", {"metadata": {"name": "rc"}, "spec": controller})
    api.create("jobs", {"metadata": {"name": "j"}, "spec": a_spec("jobs")})
    assert api.names(plural, fieldSelector=selector) == found
