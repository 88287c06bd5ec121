"""Discovery of a real API server and of ours: which resources, verbs and names only one of them serves."""

from collections.abc import Iterator

import pytest
from tests.kubernetes.cluster import real_cluster
from tests.support.apiserver import api_server
from tests.support.rest import Api, Object

from federation.client.kubeconfig import load_kubeconfig

MISSING = {
    "v1/componentstatuses",
    "v1/nodes/proxy",
    "v1/pods/attach",
    "v1/pods/exec",
    "v1/pods/log",
    "v1/pods/portforward",
    "v1/pods/proxy",
    "v1/services/proxy",
}
"""Resources of the real server that ours lacks. Remove an entry when ours serves it."""
COMPARED = ("kind", "namespaced", "singularName", "shortNames", "categories", "group", "version")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Api]]:
    """A real API server and ours, both new."""
    folder = tmp_path_factory.mktemp("kinds")
    with real_cluster(folder / "real", controllers=False) as cluster, api_server(folder / "ours") as parts:
        apis = cluster.api(), Api(load_kubeconfig(parts.kubeconfig))
        yield apis
        for api in apis:
            api.close()


def resources_of(api: Api) -> dict[str, Object]:
    """Return every resource and subresource that a server lists, by group, version and name."""
    groups = api.send("GET", "/apis").json()["groups"]
    versions = ["v1", *(version["groupVersion"] for group in groups for version in group["versions"])]
    found = {}
    for version in versions:
        listed = api.send("GET", f"/apis/{version}" if "/" in version else f"/api/{version}").json()
        found |= {f"{version}/{resource['name']}": resource for resource in listed["resources"]}
    return found


def test_ours_serves_every_resource_of_the_real_server_except_a_known_list(servers: tuple[Api, Api]) -> None:
    real, ours = map(resources_of, servers)
    assert real.keys() - ours.keys() == MISSING
    assert not ours.keys() - real.keys()


def test_both_describe_their_common_resources_alike(servers: tuple[Api, Api]) -> None:
    real, ours = map(resources_of, servers)
    different = {
        name: [(field, real[name].get(field), ours[name].get(field))]
        for name in real.keys() & ours.keys()
        for field in COMPARED
        if real[name].get(field) != ours[name].get(field)
    }
    assert not different
    unequal = {name for name in real.keys() & ours.keys() if set(real[name]["verbs"]) != set(ours[name]["verbs"])}
    assert not unequal
