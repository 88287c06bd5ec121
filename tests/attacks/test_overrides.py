"""Attack: the role edit writes OverridePolicies, and overrides objects of the namespace that it cannot write itself."""

from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policymatching import Bindings, Subject
from federation.planning.rendering.memberobject import Renderer, RenderError

RBAC = "rbac.authorization.k8s.io/v1"
GUARDED = [(RBAC, "RoleBinding"), (RBAC, "Role"), ("v1", "ResourceQuota"), ("v1", "LimitRange")]


def a_policy(api_version: str, kind: str, namespace: str = "default") -> dict[str, Any]:
    spec = {"resourceSelectors": [{"apiVersion": api_version, "kind": kind}]}
    return {"metadata": {"name": "raise", **({"namespace": namespace} if namespace else {})}, "spec": spec}


@pytest.mark.parametrize(("api_version", "kind"), GUARDED)
def test_a_namespaced_policy_overrides_no_rights_and_quotas(api_version: str, kind: str) -> None:
    bindings = Bindings()
    problem = bindings.put(a_policy(api_version, kind))
    assert problem == f"spec.resourceSelectors[0].kind: {kind} is overridden by a ClusterOverridePolicy only"
    assert bindings.resolve(Subject(api_version, kind, "default", "a", {})) == []
    with pytest.raises(OverrideError, match="ClusterOverridePolicy only"):
        bindings.resolve(Subject(api_version, kind, "default", "a", {names.OVERRIDE_POLICY_LABEL: "raise"}))


@pytest.mark.parametrize(("api_version", "kind"), GUARDED)
def test_a_cluster_wide_policy_overrides_them(api_version: str, kind: str) -> None:
    bindings = Bindings()
    assert bindings.put(a_policy(api_version, kind, "")) == ""
    assert len(bindings.resolve(Subject(api_version, kind, "default", "a", {}))) == 1


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
