"""What a join takes over, leaves and would remove, before it acts."""

from dataclasses import replace
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import DEPLOYMENTS
from federation.delivery.rules.joinpreview import Fate, foresee
from federation.delivery.rules.names import ORPHANED
from federation.planning.leftovers.record import Action, Reason, Record

ADOPT = {names.CONFLICT_RESOLUTION: "adopt", names.CLUSTERS_TO_ADOPT: '{"clusters":["east"]}'}
IF_EQUAL = {**ADOPT, names.CONFLICT_RESOLUTION: "adopt-if-equal"}
BROKEN = {**ADOPT, names.CLUSTERS_TO_ADOPT: "{"}


def live(label: str | None = None, **annotations: str) -> dict[str, Any]:
    labels = {names.MANAGED_LABEL: label} if label else {}
    return {"metadata": {"name": "web", "uid": "u1", "labels": labels, "annotations": annotations}}


def fed(*placed: str, kind: str = "Deployment", going: bool = False, **annotations: str) -> dict[str, Any]:
    placements = [{"controller": "c", "placement": [{"cluster": name} for name in placed]}]
    metadata = {"annotations": annotations, **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {})}
    template = {"apiVersion": "apps/v1", "kind": kind}
    return {"metadata": metadata, "spec": {"placements": placements, "template": template}}


def record(reason: Reason, action: Action, uid: str = "u1") -> Record:
    return Record("east", DEPLOYMENTS, "default", "web", action, reason, uid=uid)


KEPT = record(Reason.KEPT, Action.KEEP)
DELETED = replace(record(Reason.SOURCE_DELETED, Action.DELETE), at="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("obj", "federated", "about", "expected"),
    [
        # Nothing of ours, and nothing of its name.
        (live(), None, None, None),
        (live(), fed("east", going=True), None, None),
        # Records.
        (live(), None, KEPT, (Fate.LEAVES, "a user kept it")),
        (live("true"), fed("east"), DELETED, (Fate.TAKES_OVER, "placed there")),
        (live("true"), None, DELETED, (Fate.LEAVES, "a user kept it")),
        (live(), None, DELETED, (Fate.LEAVES, "a user kept it")),
        (live(), None, record(Reason.KEPT, Action.DELETE), (Fate.REMOVES, "a record asks for it (Kept)")),
        (live(), None, record(Reason.KEPT, Action.DELETE, "other"), None),
        (live("true"), None, record(Reason.SOURCE_DELETED, Action.RELEASE), (Fate.LEAVES, "loses the label")),
        (live("true"), None, record(Reason.CLUSTER_REMOVED, Action.KEEP), (Fate.LEAVES, "a user kept it")),
        # With our label, of an earlier membership.
        (live("true"), None, None, (Fate.LEAVES, "the host does not know it")),
        (live("true"), fed("east"), None, (Fate.TAKES_OVER, "placed there")),
        (live("true"), fed("west"), None, (Fate.TAKES_OVER, "if a policy places it there")),
        (live("true"), fed("west"), KEPT, (Fate.LEAVES, "not placed there")),
        (live("false"), fed("east"), None, (Fate.LEAVES, "its managed label is false")),
        # Without our label, of a name that the host federates.
        (live(), fed("east"), None, (Fate.LEAVES, "placed there, it is taken over only on demand")),
        (live(), fed("east"), KEPT, (Fate.LEAVES, "placed there, it is taken over only on demand")),
        (live(), fed("west"), None, (Fate.LEAVES, "it is taken over only on demand")),
        (live(), fed("east", **ADOPT), KEPT, (Fate.TAKES_OVER, "placed there")),
        (live(), fed("west", **ADOPT), None, (Fate.TAKES_OVER, "if a policy places it there")),
        (live(), fed("east", **IF_EQUAL), None, (Fate.TAKES_OVER, "if it is equal")),
        (live(), fed(**IF_EQUAL), None, (Fate.TAKES_OVER, "if a policy places it there and it is equal")),
        (live(), fed("east", **BROKEN), None, (Fate.LEAVES, "clusters-to-adopt")),
        # A StatefulSet that was orphaned is taken back; other kinds have no such mark.
        (live(), fed("east", kind="StatefulSet"), None, (Fate.LEAVES, "only on demand")),
        (live(**{ORPHANED: "true"}), fed("east"), None, (Fate.LEAVES, "only on demand")),
    ],
)
def test_an_object_of_a_member_is_taken_over_left_or_removed(
    obj: dict[str, Any], federated: dict[str, Any] | None, about: Record | None, expected: tuple[Fate, str] | None
) -> None:
    found = foresee(obj, federated, about, "east")
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found.fate is expected[0]
        assert expected[1] in found.why


def test_an_orphaned_stateful_set_is_taken_back() -> None:
    obj = live(**{ORPHANED: "true"})
    fields = {"f:metadata": {"f:annotations": {f"f:{ORPHANED}": {}}}}
    obj["metadata"]["managedFields"] = [
        {"manager": names.FIELD_MANAGER, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
    ]
    found = foresee(obj, fed("east", kind="StatefulSet"), None, "east")
    assert found is not None
    assert found.fate is Fate.TAKES_OVER
