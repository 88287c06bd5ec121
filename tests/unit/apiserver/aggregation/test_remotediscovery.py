"""Discovery documents of other servers are input from outside."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apiserver.aggregation.remotediscovery import (
    RESOURCES_MAX,
    read_aggregated,
    read_classic,
    read_openapi_hash,
)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "kind",
                    "items",
                    "metadata",
                    "name",
                    "versions",
                    "version",
                    "resources",
                    "resource",
                    "subresources",
                    "verbs",
                    "responseKind",
                    "paths",
                    "serverRelativeURL",
                    "shortNames",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


def aggregated(resources: Any) -> bytes:
    versions = [{"version": "v2"}, {"version": "v1", "resources": resources}]
    items = [{"metadata": {"name": "other"}}, {"metadata": {"name": "a.b"}, "versions": versions}]
    return orjson.dumps({"kind": "APIGroupDiscoveryList", "items": items})


def classic(resources: Any) -> bytes:
    return orjson.dumps({"kind": "APIResourceList", "resources": resources})


def test_both_forms_give_the_same_entries() -> None:
    kind = {"group": "a.b", "version": "v1", "kind": "Thing"}
    entry = {"resource": "things", "responseKind": kind, "scope": "Namespaced", "singularResource": "thing"}
    entry |= {"verbs": ["get"], "shortNames": ["tg"], "categories": ["all"]}
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    entry["subresources"] = [{"subresource": "scale", "responseKind": scale, "verbs": ["get"]}]
    listed = {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get"]}
    listed |= {"shortNames": ["tg"], "categories": ["all"]}
    subresource = {"name": "things/scale", **scale, "verbs": ["get"]}
    assert read_aggregated(aggregated([entry]), "a.b", "v1") == (entry,)
    assert read_classic(classic([listed, subresource]), "a.b", "v1") == (entry,)


def test_a_missing_group_version_has_no_resources() -> None:
    assert read_aggregated(aggregated([]), "a.b", "v3") == ()
    assert read_aggregated(aggregated([]), "c.d", "v1") == ()


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"{}", b'{"kind":"Status"}'])
def test_other_bodies_are_no_documents(body: bytes) -> None:
    assert read_aggregated(body, "a.b", "v1") is None
    assert read_classic(body, "a.b", "v1") is None
    assert not read_openapi_hash(body, "a.b", "v1")


def test_documents_are_bounded() -> None:
    many = [{"name": f"things{index}", "verbs": ["get"] * 1000} for index in range(RESOURCES_MAX + 5)]
    found = read_classic(classic(many), "a.b", "v1")
    assert found is not None
    assert len(found) == RESOURCES_MAX
    assert len(found[0]["verbs"]) <= 20
    parts = [{"name": "things"}, *({"name": f"things/part{index}"} for index in range(500))]
    limited = read_classic(classic(parts), "a.b", "v1")
    assert limited is not None
    assert len(limited[0]["subresources"]) <= 50
    assert read_classic(classic([{"name": "x" * 10_000}]), "a.b", "v1") == ()


@given(ANYTHING)
def test_no_document_breaks_the_reader(resources: Any) -> None:
    for body in (aggregated(resources), classic(resources), orjson.dumps(resources)):
        for found in (read_aggregated(body, "a.b", "v1"), read_classic(body, "a.b", "v1")):
            for entry in found or ():
                assert all(isinstance(verb, str) for verb in entry["verbs"])
                assert entry["responseKind"].keys() == {"group", "version", "kind"}
        read_openapi_hash(body, "a.b", "v1")


@pytest.mark.parametrize(
    ("url", "digest"),
    [
        ("/openapi/v3/apis/a.b/v1?hash=ABC123", "ABC123"),
        ("/openapi/v3/apis/a.b/v1", ""),
        ('/openapi/v3/apis/a.b/v1?hash=A"><script>', ""),
        (7, ""),
    ],
)
def test_the_hash_of_openapi_is_plain(url: Any, digest: str) -> None:
    index = orjson.dumps({"paths": {"apis/a.b/v1": {"serverRelativeURL": url}}})
    assert read_openapi_hash(index, "a.b", "v1") == digest
