"""Edges of the overriders that the neutral vectors do not reach."""

from typing import Any

import pytest

from federation.planning.overrides.containers import compute_command_patches, compute_env_patches
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.image import Image, compute_image_patches, parse_image
from federation.planning.overrides.metadata import compute_metadata_patches
from federation.planning.overrides.podspec import find

DIGEST = "sha256:" + "a" * 64


def a_pod(**container: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "nginx:1", **container}]}}


@pytest.mark.parametrize(
    ("reference", "image"),
    [
        ("nginx", Image(repository="nginx")),
        ("library/nginx:1", Image(repository="library/nginx", tag="1")),
        ("localhost/nginx", Image(registry="localhost", repository="nginx")),
        ("registry:5000/a/b:v1", Image(registry="registry:5000", repository="a/b", tag="v1")),
        ("docker.io/a/b@" + DIGEST, Image(registry="docker.io", repository="a/b", digest=DIGEST)),
        ("a__b/c-d.e:T_1", Image(repository="a__b/c-d.e", tag="T_1")),
    ],
)
def test_image_references_round_trip(reference: str, image: Image) -> None:
    assert parse_image(reference) == image
    assert str(image) == reference


@pytest.mark.parametrize("reference", ["", "Nginx", "a//b", "a:", "a@sha256:xyz", "-a", "a" * 256, "a:b c"])
def test_malformed_image_references_are_refused(reference: str) -> None:
    with pytest.raises(OverrideError, match="not an image reference"):
        parse_image(reference)


@pytest.mark.parametrize(
    ("overrider", "message"),
    [
        ({"operations": [{"imageComponent": "Size", "value": "1"}]}, r"image\[0\]\.operations\[0\]: imageComponent"),
        ({"operations": [{"imageComponent": "Tag", "operator": "append", "value": "1"}]}, "operator 'append'"),
        ({"imagePath": "/spec/containers/9/image", "operations": []}, "there is no list item '9'"),
        ({"imagePath": "/spec/containers/0/name/x", "operations": []}, "there is no map or list above 'x'"),
        ({"imagePath": "/spec/containers/0", "operations": []}, "there is no text"),
    ],
)
def test_errors_of_image_overriders_name_the_cause(overrider: dict[str, Any], message: str) -> None:
    with pytest.raises(OverrideError, match=message):
        compute_image_patches(a_pod(), [overrider])


def test_two_image_overriders_chain_on_the_same_image() -> None:
    patches = compute_image_patches(
        a_pod(),
        [
            {"containerNames": ["c"], "operations": [{"imageComponent": "Registry", "value": "r.io"}]},
            {"imagePath": "/spec/containers/0/image", "operations": [{"imageComponent": "Tag", "operator": "delete"}]},
            {"containerNames": [""], "operations": [{"imageComponent": "Tag", "value": "never"}]},
        ],
    )
    assert patches == [{"op": "replace", "path": "/spec/containers/0/image", "value": "r.io/nginx"}]


def test_commands_chain_and_an_unknown_container_is_skipped() -> None:
    overriders = [
        {"containerName": "c", "operator": "append", "value": ["a"]},
        {"containerName": "c", "operator": "append", "value": ["b"]},
        {"containerName": "other", "operator": "append", "value": ["x"]},
    ]
    patches = compute_command_patches(a_pod(), overriders, "args")
    assert patches == [{"op": "replace", "path": "/spec/containers/0/args", "value": ["a", "b"]}]
    with pytest.raises(OverrideError, match=r"args\[0\]: append operation needs value"):
        compute_command_patches(a_pod(), [{"containerName": "c", "operator": "append"}], "args")


def test_environment_variables_are_added_once() -> None:
    pod = a_pod(env=[{"name": "a", "value": "1"}])
    twice = [{"name": "b"}, {"name": "b"}]
    for value in ([{"name": "a"}], twice):
        with pytest.raises(OverrideError, match="already exists"):
            compute_env_patches(pod, [{"containerName": "c", "operator": "addIfAbsent", "value": value}])


def test_an_unknown_operator_without_variables_changes_nothing() -> None:
    pod = a_pod(env=[{"name": "a", "value": "1"}])
    patches = compute_env_patches(pod, [{"containerName": "c", "operator": "unknown", "value": []}])
    assert patches[0]["value"] == [{"name": "a", "value": "1"}]


def test_maps_keep_what_an_unknown_operator_does_not_know() -> None:
    pod = a_pod() | {"metadata": {"labels": {"a": "1"}}}
    patches = compute_metadata_patches(pod, [{"operator": "append", "value": {"b": "2"}}], "labels")
    assert patches == [{"op": "replace", "path": "/metadata/labels", "value": {"a": "1"}}]
    assert compute_metadata_patches(pod, [], "labels") == []


def test_a_workload_without_its_pod_spec_is_an_error() -> None:
    with pytest.raises(OverrideError, match=r"the object has no spec\.template\.spec"):
        find({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}}, "c")
    assert find(a_pod(), "missing") is None


def test_a_whole_map_can_be_overridden_with_an_operator_that_needs_a_value() -> None:
    with pytest.raises(OverrideError, match=r"labels\[0\]: addIfAbsent operation needs value"):
        compute_metadata_patches(a_pod(), [{"operator": "addIfAbsent"}], "labels")
    labelled = a_pod() | {"metadata": {"labels": {"a": "1"}}}
    (patch,) = compute_metadata_patches(labelled, [{"operator": "addIfAbsent", "value": {"b": "2"}}], "labels")
    assert patch["value"] == {"a": "1", "b": "2"}
    with pytest.raises(OverrideError, match="the key 'a' already exists"):
        compute_metadata_patches(
            a_pod() | {"metadata": {"labels": {"a": "1"}}}, [{"operator": "addIfAbsent", "value": {"a": "2"}}], "labels"
        )
