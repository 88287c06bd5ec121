"""Committed files that are generated from Kubernetes' sources or from a running kube-apiserver are up to date."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.kubernetes.cluster import Cluster, real_cluster
from tests.support.apiserver import api_server
from tests.support.rest import Api
from tools import generate_bootstrappolicy, generate_gofields

from federation.api.resources import CORE_GROUP, KRUISE_GROUP
from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.apiserver.semantics.schema.builtin import definition_name
from federation.client.kubeconfig import load_kubeconfig

PLURALS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
OURS = {CORE_GROUP, KRUISE_GROUP, "types.kubefed.io", "scheduling.kubefed.io", "metrics.k8s.io"}
"""Groups that the host serves beyond what a kube-apiserver without extensions does."""
COMPARED = ("rules", "aggregationRule", "roleRef", "subjects")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real API server without controllers."""
    with real_cluster(tmp_path_factory.mktemp("generated"), controllers=False) as running:
        yield running


def test_the_form_of_go_structs_is_that_of_the_sources_for_all_kinds_that_we_serve() -> None:
    text = generate_gofields.generate()
    assert text == generate_gofields.TARGET.read_text(), "run python -m tools.generate_gofields"
    for kind in builtin_kinds():
        assert f'"{definition_name(kind.resource.group, kind.resource.version, kind.resource.kind)}"' in text


def test_the_bootstrap_policy_is_that_of_the_real_server(cluster: Cluster) -> None:
    found = generate_bootstrappolicy.generate(cluster)
    assert found == generate_bootstrappolicy.TARGET.read_text(), "run python -m tools.generate_bootstrappolicy"


def test_both_servers_have_the_same_default_roles_and_bindings(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    real = policy_of(cluster.api())
    with api_server(tmp_path_factory.mktemp("ours")) as parts:
        ours = policy_of(Api(load_kubeconfig(parts.kubeconfig)))
    assert real.keys() == ours.keys()
    assert {name: fields for name, fields in ours.items() if fields != real[name]} == {}


def policy_of(api: Api) -> dict[str, Any]:
    """Return the rules, roles and subjects of each object of RBAC by plural, namespace and name.

    Roles that aggregate others are compared without their rules, which a controller copies, and rules of the
    kinds that we add are left out.
    """
    found: dict[str, Any] = {}
    try:
        for plural in PLURALS:
            for obj in api.send("GET", f"/apis/rbac.authorization.k8s.io/v1/{plural}").json()["items"]:
                fields = {name: obj.get(name) or [] for name in COMPARED}
                if fields["aggregationRule"]:
                    del fields["rules"]
                else:
                    rules = fields["rules"]
                    fields["rules"] = [rule for rule in rules if OURS.isdisjoint(rule.get("apiGroups", ()))]
                metadata = obj["metadata"]
                name = f"{plural}/{metadata.get('namespace', '')}/{metadata['name']}"
                found[name] = {**fields, "labels": metadata["labels"], "annotations": metadata["annotations"]}
    finally:
        api.close()
    return found
