"""Owner references: reading them and the controlling one."""

from typing import Any

from federation.apimachinery.ownerreferences import (
    controller_of,
    controller_reference,
    controller_uids,
    owner_references,
)

PLAIN: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "u2"}
CONTROLLER = controller_reference({"metadata": {"name": "web", "uid": "u1"}}, "apps/v1", "Deployment")


def owned(*references: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": list(references)}}


def test_a_controller_reference_blocks_foreground_deletion() -> None:
    assert CONTROLLER == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_the_controller_is_found_among_the_owners() -> None:
    assert controller_of(owned(PLAIN, CONTROLLER)) is not None
    assert controller_uids(owned(PLAIN, CONTROLLER)) == ["u1"]


def test_an_owner_that_does_not_control_is_not_the_controller() -> None:
    assert controller_of(owned(PLAIN)) is None
    assert controller_uids(owned(PLAIN)) == []


def test_absent_and_null_references_are_empty() -> None:
    assert list(owner_references({})) == []
    assert list(owner_references({"ownerReferences": None})) == []
