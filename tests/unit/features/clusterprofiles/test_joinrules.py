"""Profiles of other managers: which policy selects them, which access is chosen, and what is refused."""

import base64
from typing import Any

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.features.clusterprofiles.joinrules import (
    choose_access,
    compile_join_policy,
    first_policy,
    servers_of,
    to_cluster,
)
from federation.planning.clusters.accessproviders import parse_providers

CA = base64.b64encode(b"pem").decode()
SERVER = "https://a.example.com"
CLUSTER = {"server": SERVER, "certificate-authority-data": CA}
PROVIDERS = parse_providers(
    {
        "providers": [
            {"name": name, "execConfig": {"command": "/p"}, "servers": ["https://*.example.com"]}
            for name in ("first", "second", "unused")
        ]
    },
    setting="file",
)


def a_profile(*providers: Object, manager: str = "ocm", **labels: str) -> Object:
    metadata = {"name": "east", "namespace": "inventory", "labels": labels}
    return {
        "metadata": metadata,
        "spec": {"clusterManager": {"name": manager}},
        "status": {"accessProviders": list(providers)},
    }


def a_policy(name: str = "all", **spec: Any) -> Any:
    wanted = {"namespaces": ["inventory"], "providers": ["second", "first"], **spec}
    return compile_join_policy({"metadata": {"name": name}, "spec": wanted})


def offer(name: str = "first", **cluster: Any) -> Object:
    return {"name": name, "cluster": {**CLUSTER, **cluster}}


@pytest.mark.parametrize(
    ("policy", "profile", "expected"),
    [
        (a_policy(), a_profile(), True),
        (a_policy(namespaces=["other"]), a_profile(), False),
        (a_policy(managers=["ocm"]), a_profile(), True),
        (a_policy(managers=["fleet"]), a_profile(), False),
        (a_policy(), a_profile(manager="federation"), False),
        (a_policy(selector={"matchLabels": {"env": "prod"}}), a_profile(env="prod"), True),
        (a_policy(selector={"matchLabels": {"env": "prod"}}), a_profile(), False),
        (a_policy(selector={"matchExpressions": [{"key": "a", "operator": "No"}]}), a_profile(), False),
    ],
    ids=["all", "namespace", "manager", "other manager", "ours", "labels", "other labels", "unreadable"],
)
def test_a_policy_selects_profiles(policy: Any, profile: Object, expected: bool) -> None:
    assert policy.selects(profile) is expected


def test_the_first_policy_by_name_counts() -> None:
    found = first_policy([a_policy("b"), a_policy("a"), a_policy("0", namespaces=["x"])], a_profile())
    assert found is not None
    assert found.name == "a"


def test_the_first_provider_of_the_list_that_both_name_is_chosen() -> None:
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "east"}}
    other = {"name": "clusterprofiles.multicluster.x-k8s.io/exec/additional-args", "extension": ["--evil"]}
    profile = a_profile(offer("unused"), offer("second"), offer("first", extensions=[other, extension]))
    access = choose_access(profile, PROVIDERS, a_policy())
    assert (access.provider, access.connection.server, access.connection.ca_data) == ("first", SERVER, b"pem")
    assert access.config == {"clusterName": "east"}


def test_the_earlier_field_counts_where_the_newer_one_has_no_provider_of_that_name() -> None:
    profile = a_profile(offer("first"))
    profile["status"]["credentialProviders"] = [offer("first", server="https://old.example.com"), offer("second")]
    assert choose_access(profile, PROVIDERS, a_policy()).connection.server == SERVER
    assert servers_of(profile) == {SERVER}


@pytest.mark.parametrize(
    ("profile", "policy", "expected"),
    [
        (a_profile(), a_policy(), "has none of first, second; it has none"),
        (a_profile(offer("unused")), a_policy(), "it has unused"),
        (a_profile(offer()), a_policy(providers=["x"]), r"no provider of the policy \(x\) is in the list"),
        (a_profile(offer(server="https://evil.org")), a_policy(), "'https://evil.org' is not among the servers"),
        (a_profile(offer(server="http://a.example.com")), a_policy(), "not among the servers"),
        (a_profile({"name": "first"}), a_policy(), "not among the servers"),
        (a_profile({"name": "first", "cluster": "x"}), a_policy(), "not among the servers"),
        (a_profile(offer(**{"certificate-authority-data": ""})), a_policy(), "certificate-authority-data is missing"),
        (a_profile(offer(**{"certificate-authority-data": "?"})), a_policy(), "is not base64"),
        (a_profile(offer(**{"certificate-authority": "/etc/shadow"})), a_policy(), "certificate-authority is not"),
        (a_profile(offer(**{"insecure-skip-tls-verify": True})), a_policy(), "insecure-skip-tls-verify is not"),
        (a_profile(offer(**{"proxy-url": "http://evil"})), a_policy(), "proxy-url is not supported"),
        (a_profile(offer(**{"tls-server-name": "evil"})), a_policy(), "tls-server-name is not supported"),
    ],
)
def test_what_does_not_join_has_a_reason(profile: Object, policy: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        choose_access(profile, PROVIDERS, policy)


def test_a_cluster_gets_chosen_labels_and_the_taints_of_its_policy() -> None:
    taint = {"key": "new", "effect": "NoSchedule"}
    policy = a_policy(copiedLabels=["region", "zone"], labels={"region": "eu", "by": "x"}, taints=[taint])
    cluster = to_cluster(a_profile(region="us", zone="1", tier="gold"), policy, SERVER)
    assert cluster["metadata"]["labels"] == {"region": "eu", "zone": "1", "by": "x"}
    assert cluster["spec"] == {
        "apiEndpoint": SERVER,
        "secretRef": {"name": "east-credentials"},
        "useServiceAccount": True,
        "taints": [taint],
    }


def test_credentials_for_one_server_are_not_sent_to_another_one_where_the_cluster_has_begun_to_join() -> None:
    """The profile moves its provider, and keeps the first address with a provider that nobody trusts."""
    moved = a_profile(offer(server="https://b.example.com"), offer("untrusted"))
    assert SERVER in servers_of(moved)
    with pytest.raises(ConfigurationError, match="has begun to join at https"):
        choose_access(moved, PROVIDERS, a_policy(), SERVER)
    assert choose_access(a_profile(offer()), PROVIDERS, a_policy(), SERVER).connection.server == SERVER
