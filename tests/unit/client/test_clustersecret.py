"""Connections to members from FederatedClusters and Secrets."""

import base64
from typing import Any

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.client.clustersecret import connection_from_secret


def a_cluster(**spec: Any) -> dict[str, Any]:
    return {
        "kind": "FederatedCluster",
        "metadata": {"name": "m1"},
        "spec": {"apiEndpoint": "https://m1:6443", "secretRef": {"name": "m1"}, **spec},
    }


def a_secret(**data: str) -> dict[str, Any]:
    encoded = {key.replace("_", "-"): base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"kind": "Secret", "metadata": {"name": "m1", "namespace": "kube-admiral-system"}, "data": encoded}


BOOTSTRAP = {"certificate_authority_data": "ca", "client_certificate_data": "cert", "client_key_data": "key"}


def test_the_users_credentials_are_used_until_the_join_is_performed() -> None:
    secret = a_secret(**BOOTSTRAP, service_account_token_data="issued\n")
    joining = connection_from_secret(a_cluster(useServiceAccount=True), secret)
    assert (joining.client_cert_data, joining.token) == (b"cert", "")
    joined = {**a_cluster(useServiceAccount=True), "status": {"joinPerformed": True}}
    connection = connection_from_secret(joined, secret)
    assert (connection.client_cert_data, connection.token) == (b"", "issued")
    assert connection_from_secret(joined, secret, bootstrap=True) == joining


def test_a_secret_with_nothing_but_a_token_is_used_before_the_join_is_performed() -> None:
    secret = a_secret(certificate_authority_data="ca", service_account_token_data="issued")
    assert connection_from_secret(a_cluster(useServiceAccount=True), secret).token == "issued"


def test_an_insecure_cluster_needs_no_ca_and_ignores_one() -> None:
    connection = connection_from_secret(a_cluster(insecure=True), a_secret(**BOOTSTRAP))
    assert connection.insecure
    assert connection.ca_data == b""


def test_an_endpoint_without_a_scheme_is_https() -> None:
    connection = connection_from_secret(a_cluster(apiEndpoint="10.0.0.1:6443"), a_secret(**BOOTSTRAP))
    assert connection.server == "https://10.0.0.1:6443"


@pytest.mark.parametrize(
    ("cluster", "secret", "expected"),
    [
        (a_cluster(apiEndpoint=""), a_secret(**BOOTSTRAP), "FederatedCluster m1: spec.apiEndpoint: Required value"),
        (a_cluster(), a_secret(bootstrap_token_data="t"), "data.certificate-authority-data: Required value"),
        (a_cluster(insecure=True), a_secret(), "data.client-certificate-data: Required value"),
        (a_cluster(insecure=True), a_secret(client_certificate_data="c"), "data.client-key-data: Required value"),
        (a_cluster(insecure=True), a_secret(client_key_data="k"), "data.client-certificate-data: Required value"),
        (
            {**a_cluster(insecure=True, useServiceAccount=True), "status": {"joinPerformed": True}},
            a_secret(bootstrap_token_data="t"),
            "data.service-account-token-data: Required value",
        ),
        (
            a_cluster(),
            {**a_secret(), "data": {"certificate-authority-data": "%%%"}},
            "Secret kube-admiral-system/m1: data.certificate-authority-data: not base64",
        ),
    ],
    ids=["endpoint", "ca", "credentials", "key", "certificate", "service account", "base64"],
)
def test_missing_and_malformed_fields_are_named(cluster: Any, secret: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        connection_from_secret(cluster, secret)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
