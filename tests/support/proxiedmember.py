"""A host and one member behind its proxy, both in threads of this process, with a running pod in the member.

The member serves logs and exec as simulated members do. The host's administrator administers the member as well.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from federation.api.crds import crd_manifests
from federation.apimachinery.clock import SystemClock
from federation.apiserver.http.connectors import Connector
from federation.client.kubeconfig import load_kubeconfig
from federation.client.pool import ClusterPool
from federation.memberproxy.connector import MemberProxy
from federation.simulator.podconnections import PodExec, PodLogs
from tests.support.apiserver import api_server
from tests.support.rest import Api

_PROXY = "/apis/core.kubeadmiral.io/v1alpha1/federatedclusters/east/proxy"
_POD = {
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "nginx", "image": "nginx"}], "nodeName": "node-1"},
}
_RUNNING = {"name": "nginx", "ready": True, "restartCount": 0, "image": "nginx", "imageID": "nginx"}
_STATUS = {
    "phase": "Running",
    "containerStatuses": [{**_RUNNING, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
}


@dataclass(frozen=True, slots=True)
class ProxiedMember:
    """The kubeconfigs of the host, and of its member `east` by way of the host."""

    host: Path
    member: Path


@contextmanager
def proxied_member(directory: Path) -> Iterator[ProxiedMember]:
    """Run both during the block."""
    pool, ours = ClusterPool(), ("core.kubeadmiral.io", "v1alpha1", "federatedclusters", "proxy")
    pods: dict[tuple[str, str, str, str], Connector] = {}
    with (
        api_server(directory / "east", connectors=pods) as east,
        api_server(directory / "host", connectors={ours: MemberProxy(pool)}) as host,
        closing(Api(load_kubeconfig(east.kubeconfig), "default")) as member,
    ):
        for name, connector in (("log", PodLogs), ("exec", PodExec)):
            pods["", "v1", "pods", name] = connector(east.registry, SystemClock())
        host.run(host.registry.install_crds(crd_manifests()))
        group = {"kind": "Group", "name": "federation:system:masters", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
        member.create("clusterrolebindings", {"metadata": {"name": "hosts"}, "subjects": [group], "roleRef": role})
        member.create("pods", _POD)
        member.patch("pods", "web", {"status": _STATUS}, "status")
        pool.set_connection("east", load_kubeconfig(east.kubeconfig))
        config = yaml.safe_load(host.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] += _PROXY
        kubeconfig = directory / "member.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        yield ProxiedMember(host.kubeconfig, kubeconfig)
        host.run(pool.close())
