"""CertificateSigningRequests: what a requester, an approver and a signer may write."""

import base64
from collections.abc import Iterator, Sequence

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.rest import Api, Object, eventually, refused

CSRS = "certificatesigningrequests"
SIGNER = "example.com/conformance"
APPROVED: Object = {"type": "Approved", "status": "True", "reason": "Test", "message": "m"}


def a_request(organizations: Sequence[str] = ()) -> str:
    """Return base64 PEM of a new key's request."""
    names = [x509.NameAttribute(NameOID.COMMON_NAME, "conformance")]
    names += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


def a_csr(name: str, **spec: object) -> Object:
    return {"metadata": {"name": name}, "spec": {"signerName": SIGNER, "usages": ["client auth"], **spec}}


@pytest.fixture
def csr(api: Api) -> Iterator[Object]:
    """A stored request with a name of this test's own."""
    created = api.create(CSRS, a_csr(api.namespace, request=a_request()))
    yield created
    api.delete(CSRS, api.namespace)


def patch(api: Api, subresource: str, body: Object) -> Object:
    return api.patch(CSRS, api.namespace, body, subresource)


def test_a_request_names_its_creator_and_no_other_user(api: Api) -> None:
    spec = a_csr("x", request=a_request(), username="somebody", groups=["nobodies"], extra={"a": ["b"]})
    created = api.create(CSRS, spec, dryRun="All")["spec"]
    assert created["username"] not in {"", "somebody"}
    assert "nobodies" not in created["groups"]
    assert "a" not in created.get("extra", {})


def test_a_request_cannot_be_created_approved(api: Api) -> None:
    obj = {**a_csr("x", request=a_request()), "status": {"conditions": [APPROVED]}}
    assert api.create(CSRS, obj, dryRun="All")["status"] == {}


def test_the_spec_never_changes(api: Api, csr: Object) -> None:
    assert patch(api, "", {"spec": {"signerName": "example.com/other"}})["spec"] == csr["spec"]


def test_an_approval_sets_conditions_and_their_times_and_nothing_else(api: Api, csr: Object) -> None:
    body = {"status": {"certificate": "aGVsbG8=", "conditions": [APPROVED]}}
    approved = patch(api, "approval", body)
    assert approved["status"].keys() == {"conditions"}
    (condition,) = approved["status"]["conditions"]
    assert condition["lastUpdateTime"]
    assert condition["lastTransitionTime"]
    assert approved["spec"] == csr["spec"]


@pytest.mark.usefixtures("csr")
def test_approved_and_denied_exclude_each_other_and_stay(api: Api) -> None:
    patch(api, "approval", {"status": {"conditions": [APPROVED]}})
    with refused(422, text="mutually exclusive"):
        patch(api, "approval", {"status": {"conditions": [APPROVED, {**APPROVED, "type": "Denied"}]}})
    with refused(422, text='may not remove a condition of type "Approved"'):
        patch(api, "approval", {"status": {"conditions": []}})


@pytest.mark.usefixtures("csr")
def test_a_signer_cannot_approve_and_issues_only_certificates(api: Api) -> None:
    with refused(422, text='may not add a condition of type "Approved"'):
        patch(api, "status", {"status": {"conditions": [APPROVED]}})
    with refused(422, text="must contain at least one CERTIFICATE PEM block"):
        patch(api, "status", {"status": {"certificate": "aGVsbG8="}})
    failed = patch(api, "status", {"status": {"conditions": [{"type": "Failed", "status": "True"}]}})
    assert failed["status"]["conditions"][0]["type"] == "Failed"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"usages": []}, "spec.usages"),
        ({"usages": ["x"]}, "spec.usages[0]"),
        ({"usages": ["any", "any"]}, "spec.usages[1]"),
        ({"signerName": "kubernetes.io/legacy-unknown"}, "spec.signerName"),
        ({"signerName": "nodots/x"}, "spec.signerName"),
        ({"expirationSeconds": 599}, "spec.expirationSeconds"),
        ({"request": "aGVsbG8="}, "spec.request"),
    ],
)
def test_a_request_is_refused_with_the_field_that_is_wrong(api: Api, spec: Object, field: str) -> None:
    obj = a_csr("x", **{"request": a_request(), **spec})
    with refused(422, "Invalid") as caught:
        api.create(CSRS, obj)
    assert field in caught.value.fields


def test_nobody_gets_a_client_certificate_for_the_masters(api: Api) -> None:
    obj = a_csr("x", request=a_request(["system:masters"]), signerName="kubernetes.io/kube-apiserver-client")
    with refused(403, text="system:masters"):
        api.create(CSRS, obj)


def refusal(api: Api, subresource: str, body: Object) -> str:
    with refused(403) as caught:
        patch(api, subresource, body)
    return caught.value.message


@pytest.mark.usefixtures("csr")
def test_approving_needs_a_permission_for_the_signer(api: Api, nobody: Api) -> None:
    resources = ["certificatesigningrequests/approval", "certificatesigningrequests/status"]
    rules = [{"apiGroups": ["certificates.k8s.io"], "resources": resources, "verbs": ["*"]}]
    subject = {"kind": "ServiceAccount", "name": "nobody", "namespace": api.namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": api.namespace}
    api.create("clusterroles", {"metadata": {"name": api.namespace}, "rules": rules})
    binding = {"metadata": {"name": api.namespace}, "roleRef": reference, "subjects": [subject]}
    api.create("clusterrolebindings", binding)
    approval: Object = {"status": {"conditions": [APPROVED]}}
    failure: Object = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    try:
        text = f'user not permitted to approve requests with signerName "{SIGNER}"'
        eventually(lambda: text in refusal(nobody, "approval", approval))  # the new role counts after a moment
        assert f'user not permitted to sign requests with signerName "{SIGNER}"' in refusal(nobody, "status", failure)
    finally:
        api.delete("clusterrolebindings", api.namespace)
        api.delete("clusterroles", api.namespace)
