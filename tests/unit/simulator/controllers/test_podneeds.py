"""What keeps the containers of a pod from starting."""

from typing import Any

import pytest

from federation.apimachinery.resources import CONFIGMAPS, SECRETS
from federation.simulator.controllers.podneeds import Need, claim_problem, image_problem, missing, needs_of


def a_spec(volumes: list[dict[str, Any]] | None = None, **container: Any) -> dict[str, Any]:
    return {"volumes": volumes, "containers": [{"name": "main", "image": "web", **container}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (a_spec(), []),
        (a_spec([{"name": "a", "emptyDir": {}}]), []),
        (a_spec([{"name": "a", "configMap": {"name": "c", "optional": True}}]), []),
        (
            a_spec([{"name": "a", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}}]),
            [Need(SECRETS, "s", ("k",), "a")],
        ),
        (
            a_spec([{"name": "a", "projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "c"}}]}}]),
            [Need(SECRETS, "s", (), "a"), Need(CONFIGMAPS, "c", (), "a")],
        ),
        (a_spec(envFrom=[{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}]), [
            Need(CONFIGMAPS, "c"), Need(SECRETS, "s"),
        ]),
        (
            a_spec(env=[{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
            [Need(SECRETS, "s", ("k",))],
        ),
        (a_spec(env=[{"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}}]), []),
    ],
    ids=str,
)  # fmt: skip
def test_needs_are_what_is_not_optional(spec: dict[str, Any], expected: list[Need]) -> None:
    found = sorted(needs_of(spec), key=str)
    assert found == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("need", "found", "expected"),
    [
        (Need(SECRETS, "s"), {}, None),
        (Need(SECRETS, "s", ("k",)), {"data": {"k": ""}}, None),
        (Need(CONFIGMAPS, "c", ("k",), "v"), {"binaryData": {"k": ""}}, None),
        (Need(SECRETS, "s"), None, ("CreateContainerConfigError", 'Error: secret "s" not found')),
        (
            Need(CONFIGMAPS, "c", ("k",)),
            {},
            ("CreateContainerConfigError", "Error: couldn't find key k in ConfigMap team/c"),
        ),
        (
            Need(CONFIGMAPS, "c", ("k",), "v"),
            {},
            (
                "ContainerCreating",
                'MountVolume.SetUp failed for volume "v" : references non-existent config key: k',
            ),
        ),
    ],
    ids=str,
)
def test_what_is_missing_is_named_as_a_kubelet_does(
    need: Need, found: dict[str, Any] | None, expected: tuple[str, str] | None
) -> None:
    problem = missing(need, found, "team")
    assert (None if problem is None else (problem.reason, problem.event_message)) == expected


@pytest.mark.parametrize(
    ("image", "is_retry", "reason"),
    [
        ("nginx:1.25", False, None),
        ("registry.example.com:5000/team/web@sha256:abc", False, None),
        ("web.invalid:2", False, None),
        ("registry.invalid:5000/web", False, "ErrImagePull"),
        ("registry.invalid/web", True, "ImagePullBackOff"),
        ("registry.example.com/Web", False, "InvalidImageName"),
    ],
)
def test_images_that_cannot_be_pulled(image: str, is_retry: bool, reason: str | None) -> None:
    problem = image_problem(a_spec(image=image), is_retry=is_retry)
    assert (None if problem is None else problem.reason) == reason


@pytest.mark.parametrize(
    ("claim", "storage_class", "text"),
    [
        (None, None, 'persistentvolumeclaim "c" not found'),
        ({"metadata": {"deletionTimestamp": "x"}}, None, 'persistentvolumeclaim "c" is being deleted'),
        ({"metadata": {}, "status": {"phase": "Pending"}}, None, "pod has unbound immediate PersistentVolumeClaims"),
        ({"metadata": {}, "status": {"phase": "Pending"}}, {"volumeBindingMode": "WaitForFirstConsumer"}, ""),
        ({"metadata": {}, "status": {"phase": "Bound"}}, {}, ""),
    ],
    ids=str,
)
def test_a_claim_must_be_bound_or_wait_for_its_pod(claim: Any, storage_class: Any, text: str) -> None:
    assert claim_problem("c", claim, storage_class) == text
