"""What admission records about authors, on kinds of wishes and on objects that choose an override policy."""

import uuid

import orjson
import pytest

from federation.admission.authors import AuthorAdmission, record_choice
from federation.api import names
from federation.api.resources import CLONE_SETS, OVERRIDE_POLICIES, UNITED_DEPLOYMENTS
from federation.apimachinery.errors import Forbidden
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.apiserver.admission.requests import AdmissionRequest
from federation.planning.authors import AUTHORS_MAX, authors_of

ANN, BOB = {"username": "ann", "groups": ["tenants"]}, {"username": "bob", "groups": []}
WISHES = {UNITED_DEPLOYMENTS.group_resource}


def choosing(replicas: int = 1, **annotations: str) -> Object:
    labels = {names.OVERRIDE_POLICY_LABEL: "special"}
    return {"metadata": {"name": "a", "labels": labels, "annotations": annotations}, "spec": {"replicas": replicas}}


@pytest.mark.parametrize("kind", [DEPLOYMENTS, CLONE_SETS])
def test_who_chooses_an_override_policy_is_recorded(kind: Resource) -> None:
    obj = choosing(**{names.AUTHORS: "forged", "own": "kept"})
    record_choice(WISHES, kind, obj, None, lambda: ANN)
    assert authors_of(obj) == [ANN]
    assert obj["metadata"]["annotations"]["own"] == "kept"
    later = choosing(2)
    record_choice(WISHES, kind, later, obj, lambda: BOB)
    assert authors_of(later) == [ANN, BOB], "the label is still the first's"


def test_who_chooses_nothing_leaves_no_record() -> None:
    obj = choosing(**{names.AUTHORS: "forged"})
    del obj["metadata"]["labels"]
    record_choice(WISHES, DEPLOYMENTS, obj, None, lambda: ANN)
    assert obj["metadata"]["annotations"] == {}


def test_the_record_of_a_wish_is_not_that_of_a_choice() -> None:
    obj = choosing(**{names.AUTHORS: "that of the other plugin"})
    record_choice(WISHES, UNITED_DEPLOYMENTS, obj, None, lambda: ANN)
    assert obj["metadata"]["annotations"][names.AUTHORS] == "that of the other plugin"


def a_write(obj: Object, old: Object | None, user: Object, subresource: str = "") -> AdmissionRequest:
    return AdmissionRequest(
        uid=str(uuid.uuid4()),
        operation="CREATE" if old is None else "UPDATE",
        resource=OVERRIDE_POLICIES,
        versions=("v1alpha1",),
        subresource=subresource,
        namespace="default",
        name="a",
        user=user,
        dry_run=False,
        obj=obj,
        old=old,
        namespace_labels={},
    )


def policy(rules: int) -> Object:
    return {"metadata": {"name": "a"}, "spec": {"overrideRules": [{"overriders": {"image": n}} for n in range(rules)]}}


def test_a_wish_has_a_bounded_number_of_authors() -> None:
    plugin, old = AuthorAdmission(resources=[OVERRIDE_POLICIES.group_resource]), None
    for number in range(1, AUTHORS_MAX + 1):
        old = plugin.mutate(a_write(policy(number), old, {"username": f"user-{number}", "groups": []}))
    assert old is not None
    assert len(authors_of(old)) == AUTHORS_MAX
    assert plugin.mutate(a_write(policy(AUTHORS_MAX), old, BOB)) == old
    with pytest.raises(Forbidden, match="written by more than 32 users; delete it and create it again"):
        plugin.mutate(a_write(policy(AUTHORS_MAX + 1), old, BOB))


def test_a_subresource_has_no_author() -> None:
    obj = orjson.loads(orjson.dumps(policy(1)))
    assert AuthorAdmission(resources=["a"]).mutate(a_write(obj, policy(1), ANN, "scale")) == policy(1)
