"""What the admission of KubeFed's kinds refuses before anything is tried, and which rights it asks for."""

import uuid
from typing import Any

import pytest

from federation.api.kubefedkinds import FEDERATED_KINDS
from federation.apimachinery.errors import Forbidden
from federation.apimachinery.resources import Object
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, AccessDecision
from federation.features.kubefed.admission import _checks, _checks_of_preference, _problems, _require

CONFIG_MAP, NAMESPACE = FEDERATED_KINDS["FederatedConfigMap"], FEDERATED_KINDS["FederatedNamespace"]


def an_object(name: str = "web", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "kind", "field"),
    [
        (an_object(), CONFIG_MAP, ""),
        (an_object("default"), NAMESPACE, ""),
        (an_object(""), CONFIG_MAP, "metadata.name"),
        (an_object("other"), NAMESPACE, "metadata.name"),
        (
            an_object(overrides=[{"clusterOverrides": [{"path": "/data/a"}, {"path": "/metadata/name"}]}]),
            CONFIG_MAP,
            "spec.overrides[0].clusterOverrides[1].path",
        ),
        (
            an_object(overrides=[{}, {"clusterOverrides": [{"path": "kind"}]}]),
            CONFIG_MAP,
            "spec.overrides[1].clusterOverrides[0].path",
        ),
    ],
)
def test_an_object_that_cannot_work_names_its_field(obj: Object, kind: Any, field: str) -> None:
    assert [each["field"] for each in _problems(obj, kind, "default")] == ([field] if field else [])


def rights(permissions: Any) -> list[tuple[str, str, str, str]]:
    return [("/".join(verbs), check.resource, check.namespace, check.name) for verbs, check in permissions]


def test_an_author_needs_the_rights_on_everything_that_is_written_for_him() -> None:
    asked = rights(_checks(an_object(), CONFIG_MAP, "default"))
    assert [each[:3] for each in asked] == [
        ("create", "configmaps", "default"),
        ("update/patch", "configmaps", "default"),
        ("create", "propagationpolicies", "default"),
        ("update/patch", "propagationpolicies", "default"),
    ]
    assert asked[0][3] == "web"
    overridden = rights(_checks(an_object(overrides=[{}]), CONFIG_MAP, "default"))
    assert [each[1] for each in overridden[4:]] == ["overridepolicies"] * 2
    nowhere = rights(_checks(an_object(placement={"clusters": []}), CONFIG_MAP, "default"))
    assert nowhere[4:] == [("delete", "configmaps", "default", "web")]
    assert rights(_checks(an_object(placement={"clusters": [{"name": "m1"}]}), CONFIG_MAP, "default")) == asked
    role = rights(_checks(an_object(), FEDERATED_KINDS["FederatedClusterRole"], ""))
    assert role[-1] == ("escalate", "clusterroles", "", "web")
    assert rights(_checks(an_object("default"), NAMESPACE, "default")) == [
        ("update/patch", "namespaces", "", "default"),
        ("update/patch", "propagationpolicies", "default", ""),
    ]
    preference = {"metadata": {"name": "web"}, "spec": {"targetKind": "FederatedDeployment"}}
    assert [each[:2] for each in rights(_checks_of_preference(preference, "default"))] == [
        ("update/patch", "federateddeployments"),
        ("update/patch", "deployments"),
        ("update/patch", "propagationpolicies"),
    ]


@pytest.mark.parametrize(
    ("group", "namespace", "name", "text"),
    [
        ("apps", "default", "web", 'cannot update things.apps "web" in the namespace "default", which'),
        ("", "", "", "cannot update things at the cluster scope, which"),
    ],
)
def test_a_missing_right_is_named_and_one_of_several_verbs_is_enough(
    group: str, namespace: str, name: str, text: str
) -> None:
    request = AdmissionRequest(
        uid=str(uuid.uuid4()),
        operation="CREATE",
        resource=CONFIG_MAP.resource,
        versions=("v1beta1",),
        subresource="",
        namespace="default",
        name="web",
        user={"username": "ann"},
        dry_run=False,
        obj=an_object(),
        old=None,
        namespace_labels={},
    )
    permission = ("update", "patch"), AccessCheck("", group, "things", namespace=namespace, name=name)
    _require(request, lambda check: AccessDecision(check.verb == "patch"), [permission])
    with pytest.raises(Forbidden, match='User "ann"') as refused:
        _require(request, lambda check: AccessDecision(check.verb == "create"), [permission])
    assert text in str(refused.value)
