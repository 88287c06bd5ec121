"""Attack: the role edit writes OverridePolicies, and overrides objects of the namespace that it cannot write itself.

Or it writes one policy that is copied into so many objects that host and control plane have no memory left.
"""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.apimachinery.resources import GroupKind, group_of
from federation.planning.overrides.entries import plan_override_patch
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policymatching import Bindings, Subject
from federation.planning.rendering.memberobject import Renderer, RenderError

RBAC = "rbac.authorization.k8s.io/v1"
GUARDED = [(RBAC, "RoleBinding"), (RBAC, "Role"), ("v1", "ResourceQuota"), ("v1", "LimitRange")]


def a_policy(api_version: str, kind: str, namespace: str = "default") -> dict[str, Any]:
    spec = {"resourceSelectors": [{"apiVersion": api_version, "kind": kind}]}
    return {"metadata": {"name": "raise", **({"namespace": namespace} if namespace else {})}, "spec": spec}


@pytest.mark.parametrize(
    ("api_version", "kind"), [*GUARDED, ("v9", "ResourceQuota"), ("rbac.authorization.k8s.io/v1beta1", "Role")]
)
def test_a_namespaced_policy_overrides_no_rights_and_quotas(api_version: str, kind: str) -> None:
    bindings = Bindings()
    problem = bindings.put(a_policy(api_version, kind))
    assert problem == f"spec.resourceSelectors[0].kind: {kind} is overridden by a ClusterOverridePolicy only"
    assert bindings.resolve(Subject(GroupKind(group_of(api_version), kind), "default", "a", {})) == []
    with pytest.raises(OverrideError, match="ClusterOverridePolicy only"):
        bindings.resolve(
            Subject(GroupKind(group_of(api_version), kind), "default", "a", {names.OVERRIDE_POLICY_LABEL: "raise"})
        )


@pytest.mark.parametrize(("api_version", "kind"), GUARDED)
def test_a_cluster_wide_policy_overrides_them(api_version: str, kind: str) -> None:
    bindings = Bindings()
    assert bindings.put(a_policy(api_version, kind, "")) == ""
    assert len(bindings.resolve(Subject(GroupKind(group_of(api_version), kind), "default", "a", {}))) == 1


@pytest.mark.parametrize("path", ["/kind", "/apiVersion", "/metadata/name", "/metadata/namespace", "/metadata"])
def test_an_override_cannot_change_the_identity_of_an_object(path: str) -> None:
    (config,) = (c for c in default_type_configs() if c["metadata"]["name"] == "configmaps")
    value: Any = {"name": "other"} if path == "/metadata" else "other"
    patches = [{"op": "replace", "path": path, "value": value}]
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    overrides = [{"controller": "x", "clusters": [{"cluster": "east", "patches": patches}]}]
    renderer = Renderer({"spec": {"template": template, "overrides": overrides}}, from_config(config))
    with pytest.raises(RenderError):
        renderer.render("east")


def a_placed_config_map(name: str, *clusters: str) -> dict[str, Any]:
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    placements = [{"controller": "s", "placement": [{"cluster": cluster} for cluster in clusters]}]
    metadata: dict[str, Any] = {"name": f"{name}-configmaps", "namespace": "default", "resourceVersion": "1"}
    metadata["annotations"] = {names.PENDING_CONTROLLERS: "[]"}
    return {"metadata": metadata, "spec": {"template": template, "placements": placements}}


def a_flood(additions: int, number: int = 0) -> dict[str, Any]:
    added = [{"path": f"/data/x{index}", "operator": "add", "value": "x"} for index in range(additions)]
    policy = a_policy("v1", "ConfigMap")
    policy["metadata"]["name"] += str(number)
    policy["spec"]["overrideRules"] = [{"overriders": {"jsonpatch": added}}]
    return policy


@pytest.mark.parametrize("policies", [[9000], [700] * 20], ids=["one large policy", "many small policies"])
def test_policies_are_not_copied_into_objects_without_limit(policies: list[int]) -> None:
    bindings = Bindings()
    for number, additions in enumerate(policies):
        bindings.put(a_flood(additions, number))
    written = 0
    for name in ("a", "b", "c"):
        federated = a_placed_config_map(name, "east", "west")
        found = bindings.resolve(Subject(GroupKind("", "ConfigMap"), "default", name, {}))
        plan = plan_override_patch(federated, (), found, lambda cluster: {"metadata": {"name": cluster}})
        (failure,) = plan.failures
        assert failure.startswith('OverridePolicy "default/raise')
        assert "and the limit is 73,728; " in failure
        assert failure.endswith("in clusters [east,west]")
        written += len(orjson.dumps(plan.patch))
    assert written < 3 * 4096


def test_policies_with_long_names_are_not_recorded_in_objects_without_limit() -> None:
    bindings = Bindings()
    for number in range(400):
        policy = a_policy("v1", "ConfigMap")
        policy["metadata"]["name"] = f"{number:03}{'n' * 250}"
        policy["spec"]["overrideRules"] = [{"overriders": {"labels": [{"operator": "overwrite", "value": {}}]}}]
        bindings.put(policy)
    found = bindings.resolve(Subject(GroupKind("", "ConfigMap"), "default", "a", {}))
    federated = a_placed_config_map("a", "east")
    plan = plan_override_patch(federated, (), found, lambda cluster: {"metadata": {"name": cluster}})
    assert plan.failures
    assert len(orjson.dumps(plan.patch)) < 4096


def test_the_reason_why_an_override_fails_is_not_copied_into_objects_without_limit() -> None:
    bindings = Bindings()
    policy = a_policy("v1", "ConfigMap")
    operations = [{"imageComponent": "?" * 90_000, "value": "a"}]
    overriders = {"image": [{"imagePath": "/data/a", "operations": operations}]}
    policy["spec"]["overrideRules"] = [{"overriders": overriders}]
    bindings.put(policy)
    found = bindings.resolve(Subject(GroupKind("", "ConfigMap"), "default", "a", {}))
    federated = a_placed_config_map("a", "east")
    plan = plan_override_patch(federated, (), found, lambda cluster: {"metadata": {"name": cluster}})
    (failure,) = plan.failures
    assert failure.endswith("… in clusters [east]")
    assert len(failure) < 4096
