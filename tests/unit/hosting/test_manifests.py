"""The account's rights: enough for every informer of the controllers, and no wildcard."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from federation.api import names
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS, API_SERVICES, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient
from federation.client.pool import ClusterPool
from federation.hosting.manifests import USER, account_rules, host_manifests
from federation.hosting.roles import HOST_RBAC
from federation.journal.memoryjournal import MemoryJournal
from federation.settings import Settings
from federation.wiring import Wiring


def watched() -> Iterator[Resource]:
    """Yield what the controllers watch on the host."""
    clock = ManualClock()
    client = LocalClient(Registry(MemoryStore(clock=clock), clock=clock))
    wiring = Wiring(client, ClusterPool(clock=clock), MemoryJournal(), Settings(Path("unused")), clock)
    for informer in wiring.informers.all():
        yield informer.resource


def may(verb: str, group: str, resource: str) -> bool:
    return any(
        group in rule.get("apiGroups", ()) and resource in rule["resources"] and verb in rule["verbs"]
        for rule in account_rules()
    )


def test_the_account_may_read_whatever_the_controllers_watch() -> None:
    lacking = [
        f"{verb} {resource.group_resource}"
        for resource in watched()
        for verb in ("list", "watch")
        if not may(verb, resource.group, resource.plural)
    ]
    assert lacking == []


def test_no_rule_has_a_wildcard() -> None:
    assert not [rule for rule in account_rules() for values in rule.values() if "*" in values]


@pytest.mark.parametrize("verb", ["escalate", "bind"])
def test_the_account_cannot_extend_its_rights(verb: str) -> None:
    assert not may(verb, "rbac.authorization.k8s.io", "clusterroles")


def test_only_the_users_behind_overrides_are_impersonated() -> None:
    (rule,) = [rule for rule in account_rules() if "impersonate" in rule["verbs"]]
    assert set(rule["resourceNames"]) == {names.OVERRIDE_POLICY_USER, names.CLUSTER_OVERRIDE_POLICY_USER}


def test_tenants_get_their_rights_through_the_default_roles() -> None:
    roles = {each["metadata"]["name"]: each for each in host_manifests(HOST_RBAC.rules)}
    labels = roles["federation:aggregate-to-edit"]["metadata"]["labels"]
    assert labels["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert roles["federation:aggregate-to-edit"]["rules"] == HOST_RBAC.rules["edit"]


def test_the_account_is_bound_to_its_role() -> None:
    (binding,) = [
        each
        for each in host_manifests({})
        if each["kind"] == "ClusterRoleBinding" and each["metadata"]["name"] == "federation"
    ]
    (subject,) = binding["subjects"]
    assert f"system:serviceaccount:{subject['namespace']}:{subject['name']}" == USER


@pytest.mark.parametrize("resource", [ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS, API_SERVICES])
@pytest.mark.parametrize("verb", ["create", "delete"])
def test_the_account_neither_makes_nor_removes_what_protects_the_host(resource: Resource, verb: str) -> None:
    rules = [rule for rule in account_rules() if resource.plural in rule.get("resources", ())]
    assert rules
    assert not any(verb in rule["verbs"] for rule in rules)
