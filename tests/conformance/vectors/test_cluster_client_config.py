"""The credentials that a member's Secret stands for."""

import base64
from typing import Any

import pytest
from tests.support.vectors import each_case, filled, load

from federation.apimachinery.errors import ConfigurationError
from federation.client.clustersecret import connection_from_secret


@each_case(load("cluster_client_config"))
def test_client_config(case: dict[str, Any]) -> None:
    given = filled(case["input"], insecure=False, useBootstrap=False, secretData={})
    expected = filled(case["expected"], error=False, insecure=False, caData="", certData="", keyData="", bearerToken="")
    data = {key: base64.b64encode((value or "").encode()).decode() for key, value in given["secretData"].items()}
    cluster = {
        "kind": "FederatedCluster",
        "metadata": {"name": "member"},
        "spec": {"apiEndpoint": "https://member", "insecure": given["insecure"], "secretRef": {"name": "member"}},
    }
    secret = {"kind": "Secret", "metadata": {"name": "member"}, "data": data}
    if expected["error"]:
        with pytest.raises(ConfigurationError):
            connection_from_secret(cluster, secret, bootstrap=given["useBootstrap"])
        return
    connection = connection_from_secret(cluster, secret, bootstrap=given["useBootstrap"])
    assert connection.insecure == expected["insecure"]
    assert connection.ca_data.decode() == expected["caData"]
    assert connection.client_cert_data.decode() == expected["certData"]
    assert connection.client_key_data.decode() == expected["keyData"]
    assert connection.token == expected["bearerToken"]
