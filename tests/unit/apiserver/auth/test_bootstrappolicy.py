"""Kubernetes' default roles, and what the owner of an API server adds to them."""

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import CLUSTER_ROLES
from federation.apiserver.auth.bootstrappolicy import RBACOptions, default_objects, ensure_default_rbac
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient

ADDED = {"apiGroups": ["example.com"], "resources": ["boxes"], "verbs": ["get"]}
OPTIONS = RBACOptions(rules={"view": (ADDED,)})


def test_added_rules_are_those_of_one_role() -> None:
    without, found = list(default_objects(RBACOptions())), list(default_objects(OPTIONS))
    assert all(("rules" in obj) is (plural in ("clusterroles", "roles")) for plural, obj in found)
    changed = [(before, after) for (_, before), (_, after) in zip(without, found, strict=True) if before != after]
    ((before, after),) = changed
    assert after["metadata"]["name"] == "system:aggregate-to-view"
    assert after["rules"] == [*before["rules"], ADDED]


async def test_the_roles_of_a_start_have_the_added_rules() -> None:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    await registry.start()
    await ensure_default_rbac(registry, OPTIONS)
    client = LocalClient(registry, user_agent="admin")
    assert ADDED in (await client.get(CLUSTER_ROLES, "system:aggregate-to-view"))["rules"]
    await ensure_default_rbac(registry)
