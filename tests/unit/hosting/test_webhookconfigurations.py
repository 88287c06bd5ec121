"""Which writes the host sends to our webhooks, and what happens to a write when no webhook server answers."""

import pytest

from federation.api import names
from federation.api.resources import CORE_GROUP
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import DEPLOYMENTS
from federation.hosting.manifests import USER
from federation.hosting.reachability import check_url, to_client_config
from federation.hosting.webhookconfigurations import is_exempt, to_configurations

PROTECTED = (f"federatedobjects.{CORE_GROUP}", "horizontalpodautoscalers.autoscaling")


def configured() -> dict[str, dict]:
    config = to_client_config("https://10.0.0.5:7443", "Q0E=")
    both = to_configurations(PROTECTED, [DEPLOYMENTS], config)
    return {webhook["name"].partition(".")[0]: webhook for each in both for webhook in each["webhooks"]}


def test_only_writes_of_our_kinds_are_refused_when_nobody_answers() -> None:
    policies = {name: webhook["failurePolicy"] for name, webhook in configured().items()}
    assert policies == {"hold": "Ignore", "mutate": "Fail", "validate": "Fail", "warn": "Ignore"}
    groups = {
        rule for name in ("mutate", "validate") for each in configured()[name]["rules"] for rule in each["apiGroups"]
    }
    assert groups == {CORE_GROUP}


def test_subresources_of_our_kinds_are_reviewed() -> None:
    (rule,) = configured()["validate"]["rules"]
    assert rule["resources"] == ["federatedobjects", "federatedobjects/*"]
    assert rule["operations"] == ["CREATE", "UPDATE"]


def test_objects_of_federated_kinds_are_held_when_they_are_created() -> None:
    (rule,) = configured()["hold"]["rules"]
    assert (rule["apiGroups"], rule["resources"], rule["operations"]) == (["apps"], ["deployments"], ["CREATE"])


def test_our_own_writes_and_those_that_clean_up_are_not_sent() -> None:
    for webhook in configured().values():
        (condition,) = webhook["matchConditions"]
        assert f"'{USER}'" in condition["expression"]
        assert "'system:serviceaccount:kube-system:generic-garbage-collector'" in condition["expression"]
    assert is_exempt(USER)
    assert not is_exempt("system:admin")


def test_a_configuration_without_federated_kinds_has_no_empty_webhook() -> None:
    mutating, _ = to_configurations(PROTECTED, [], to_client_config("https://10.0.0.5:7443", ""))
    assert [webhook["name"] for webhook in mutating["webhooks"]] == [f"mutate.{names.HOST_WEBHOOKS}"]


def test_an_address_becomes_a_url() -> None:
    config = to_client_config("https://10.0.0.5:7443", "Q0E=")
    assert config("/x") == {"url": "https://10.0.0.5:7443/x", "caBundle": "Q0E="}


@pytest.mark.parametrize(("port", "wanted"), [("", 443), (":8443", 8443)])
def test_the_name_of_a_service_becomes_a_service(port: str, wanted: int) -> None:
    config = to_client_config(f"https://federation.kube-admiral-system.svc{port}", "Q0E=")
    service = {"name": "federation", "namespace": "kube-admiral-system", "port": wanted, "path": "/x"}
    assert config("/x") == {"service": service, "caBundle": "Q0E="}


@pytest.mark.parametrize("url", ["http://10.0.0.5", "10.0.0.5:7443", "https://10.0.0.5/path", "https://a?b=c"])
def test_a_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="host-url"):
        check_url(url, "127.0.0.1")


def test_a_listener_on_all_addresses_needs_a_url() -> None:
    with pytest.raises(ConfigurationError, match="give --host-url"):
        check_url("", "0.0.0.0")
    assert check_url("https://10.0.0.5:7443/", "0.0.0.0") == "https://10.0.0.5:7443"
