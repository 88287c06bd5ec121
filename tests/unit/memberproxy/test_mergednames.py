"""Names of member objects on the host: unique, reversible, and field selectors that use them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import BadRequest
from federation.memberproxy.mergednames import (
    is_hashed,
    merged_name,
    possible_clusters,
    raw_name,
    to_member_fields,
    to_merged,
)

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?", fullmatch=True)
LONG = st.integers(150, 253).map(lambda length: "x" * length)


@given(cluster=NAMES, name=NAMES | LONG, others=st.lists(NAMES, max_size=5))
def test_a_name_leads_back_to_its_cluster(cluster: str, name: str, others: list[str]) -> None:
    merged = merged_name(cluster, name)
    assert len(merged) <= 253
    assert cluster in possible_clusters([*others, cluster], merged)
    if not is_hashed(merged):
        assert raw_name(cluster, merged) == name


@given(cluster=NAMES, name=NAMES)
def test_no_other_name_of_a_cluster_leads_to_the_same(cluster: str, name: str) -> None:
    found = raw_name(cluster, name)
    assert not found or merged_name(cluster, found) == name


def test_one_name_can_mean_pods_of_two_clusters() -> None:
    assert possible_clusters(["a", "a-b", "c"], "a-b-web") == ["a", "a-b"]
    assert (raw_name("a", "a-b-web"), raw_name("a-b", "a-b-web")) == ("b-web", "web")


def test_a_name_is_never_shorter_than_that_of_its_cluster() -> None:
    long = "x" * 250
    assert possible_clusters([long, "x"], "x-web") == ["x"]
    assert possible_clusters([long], "x" * 243) == []
    assert possible_clusters([long], merged_name(long, "web")) == [long]


def test_a_cluster_whose_name_begins_another_one_has_no_such_pod() -> None:
    assert raw_name("member-1", "member-10-web") == ""


def test_the_object_of_a_member_is_not_changed() -> None:
    pod = {"metadata": {"name": "web", "annotations": {"a": "b"}}, "spec": {"nodeName": "n"}}
    shown = to_merged("east", pod)
    assert shown["metadata"]["annotations"] == {
        "a": "b",
        "kubeadmiral.io/cluster": "east",
        "kubeadmiral.io/raw-name": "web",
    }
    assert shown["spec"] == {"nodeName": "east-n"}
    assert pod == {"metadata": {"name": "web", "annotations": {"a": "b"}}, "spec": {"nodeName": "n"}}


@pytest.mark.parametrize(
    ("given_selector", "expected"),
    [
        ("", ""),
        ("status.phase=Running", "status.phase=Running"),
        ("metadata.name=east-web", "metadata.name=web"),
        ("metadata.name=west-web", None),
        ("metadata.name!=east-web", "metadata.name!=web"),
        ("metadata.name!=west-web", ""),
        ("spec.nodeName=east-n1,status.phase!=Failed", "spec.nodeName=n1,status.phase!=Failed"),
        ("spec.nodeName=", "spec.nodeName="),
        (r"metadata.name=east-a\,b", r"metadata.name=a\,b"),
    ],
)
def test_field_selectors_for_a_member(given_selector: str, expected: str | None) -> None:
    assert to_member_fields("east", given_selector) == expected


def test_a_malformed_field_selector_is_refused() -> None:
    with pytest.raises(BadRequest, match="can't understand 'x'"):
        to_member_fields("east", "x")
