"""Clusters of other inventories join by a ClusterJoinPolicy, with credentials of a real program.

A tenant who may write ClusterProfiles in the inventory's namespace tries to run a program, to get the credentials sent
to a server of his own, and to take or move the name of another cluster.
"""

import base64
import json
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.federation import Federation, eventually, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, POLICY, Member, assert_works
from tests.support.rest import Object
from tests.support.sources import ROOT

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("starts a control plane and a cluster"),
    pytest.mark.xdist_group("joining-by-profile"),
]
PAGE = ROOT / "docs" / "reference" / "clusterprofiles.md"
PROFILES, POLICIES, CLUSTERS = "clusterprofiles", "clusterjoinpolicies", "federatedclusters"


class Inventory:
    """The control plane, a cluster that may join, the program, and a server of the tenant."""

    def __init__(self, fed: Federation, member: Member, folder: Path, evil_port: int) -> None:
        self.fed = fed
        self.member = member
        self.folder = folder
        self.evil = f"https://127.0.0.1:{evil_port}"
        self.connections: list[bytes] = []
        """What arrived at the tenant's server."""
        cluster = member.document["clusters"][0]["cluster"]
        self.server, self.ca = cluster["server"], cluster["certificate-authority-data"]

    def runs(self) -> list[Object]:
        """Return the arguments and KUBERNETES_EXEC_INFO of each run of the program."""
        return [json.loads(line) for line in (self.folder / "runs").read_text().splitlines()]

    def write(self, name: str, cluster: Object, provider: str = "ocm-token", **spec: Any) -> None:
        """Write a profile and its status, as its manager does."""
        manifest = {
            "apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "ClusterProfile",
            "metadata": {"name": name, "namespace": "inventory", "labels": {"env": "prod", "region": "eu"}},
            "spec": {"clusterManager": {"name": "open-cluster-management"}, **spec},
        }
        self.fed.kubectl.apply(manifest)
        status = {"status": {"accessProviders": [{"name": provider, "cluster": cluster}]}}
        patch = ("patch", PROFILES, name, "-n", "inventory", "--subresource=status", "--type=merge")
        self.fed.kubectl(*patch, "-p", json.dumps(status))

    def problem(self, name: str, expected: str) -> None:
        """Wait until the status of the policy says why the cluster of a profile does not join."""

        def found() -> list[Object]:
            policy = self.fed.kubectl.json("get", POLICIES, "from-ocm")
            return list((policy.get("status") or {}).get("problems") or [])

        eventually(
            found,
            lambda seen: any(each["profile"] == f"inventory/{name}" and expected in each["message"] for each in seen),
            what=f"a problem of {name}: {expected}",
        )

    def clusters(self) -> list[str]:
        return self.fed.kubectl("get", CLUSTERS, "-o", "name").split()


def examples() -> tuple[Object, Object]:
    """Return the policy and the list of providers that the page shows."""
    policy, providers = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return yaml.safe_load(policy), yaml.safe_load(providers)


@contextmanager
def a_listener(connections: list[bytes]) -> Iterator[int]:
    """Record what arrives at a port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connections.append(connection.recv(4096))

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def write_providers(folder: Path, server: str) -> Path:
    """Write the page's list of providers, for this server, with a program in the folder; return the list.

    The program prints `credential.json` and appends a line to `runs`.
    """
    _, providers = examples()
    plugin, credential = folder / "plugin", folder / "credential.json"
    plugin.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"run = {{'args': sys.argv[1:], 'info': json.loads(os.environ['KUBERNETES_EXEC_INFO'])}}\n"
        f"print(json.dumps(run), file=open({str(folder / 'runs')!r}, 'a'))\n"
        f"print(open({str(credential)!r}).read())\n"
    )
    plugin.chmod(0o755)
    (folder / "runs").touch()
    entry = providers["providers"][0]
    entry["servers"] = [server]
    entry["execConfig"]["command"] = str(plugin)
    listed = folder / "providers.yaml"
    listed.write_text(yaml.safe_dump(providers))
    return listed


def begin(found: Inventory) -> None:
    """Give the program a token of the cluster, and create the inventory's namespace and the page's policy."""
    policy, _ = examples()
    kind = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    credential = {**kind, "status": {"token": found.member.token()}}
    (found.folder / "credential.json").write_text(json.dumps(credential))
    found.fed.kubectl("create", "namespace", "inventory")
    policy["spec"].pop("taints")
    found.fed.kubectl.apply(policy)


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inventory]:
    folder = tmp_path_factory.mktemp("profiles")
    connections: list[bytes] = []
    with free_clusters(folder / "clusters", 1) as paths, a_listener(connections) as evil_port:
        server = yaml.safe_load(paths[0].read_text())["clusters"][0]["cluster"]["server"]
        listed = write_providers(folder, server)
        serve = start_serve(folder / "host", FEDERATION_CLUSTER_PROVIDERS_FILE=str(listed))
        with closing(serve) as fed:
            found = Inventory(fed, Member(fed, "east", paths[0]), folder, evil_port)
            found.connections = connections
            fed.kubectl.apply(POLICY, DEPLOYMENT)
            begin(found)
            yield found


def test_what_a_tenant_writes_runs_nothing_and_sends_nothing(inventory: Inventory) -> None:
    good = {"server": inventory.server, "certificate-authority-data": inventory.ca}
    inventory.write("elsewhere", {**good, "server": inventory.evil})
    inventory.write("own-program", good, provider="/bin/sh")
    inventory.write("no-check", {**good, "insecure-skip-tls-verify": True, "certificate-authority-data": ""})
    inventory.write("by-proxy", {**good, "proxy-url": inventory.evil})
    inventory.problem("elsewhere", "credentials are not sent there")
    inventory.problem("own-program", "status.accessProviders has none of ocm-token")
    inventory.problem("no-check", "insecure-skip-tls-verify is not supported")
    inventory.problem("by-proxy", "proxy-url is not supported")
    assert inventory.clusters() == []
    assert inventory.runs() == []
    assert inventory.connections == []
    inventory.fed.kubectl("delete", PROFILES, "--all", "-n", "inventory")


def test_a_cluster_joins_with_the_credentials_of_the_program_and_keeps_name_and_address(inventory: Inventory) -> None:
    fed = inventory.fed
    extensions = [
        {"name": "clusterprofiles.multicluster.x-k8s.io/exec/additional-args", "extension": ["--exec=/bin/sh"]},
        {"name": "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs", "extension": {"LD_PRELOAD": "/x.so"}},
        {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "east"}},
    ]
    good = {"server": inventory.server, "certificate-authority-data": inventory.ca, "extensions": extensions}
    inventory.write("east", good)
    eventually(
        lambda: fed.kubectl.json("get", POLICIES, "from-ocm").get("status"),
        lambda seen: seen == {"selected": 1, "joined": 1},
        what="the cluster joined",
    )
    assert_works(inventory.member)
    runs = inventory.runs()
    assert runs[0]["args"] == ["--managed-serviceaccount=federation"], "arguments are the administrator's"
    assert runs[0]["info"]["spec"]["cluster"]["config"] == {"clusterName": "east"}
    assert runs[0]["info"]["spec"]["cluster"]["server"] == inventory.server
    assert len(runs) == 1
    cluster = fed.kubectl.json("get", CLUSTERS, "east")
    assert cluster["metadata"]["labels"] == {"region": "eu", "joined-by": "inventory"}
    assert set(inventory.member.secret()) == {"certificate-authority-data", "service-account-token-data"}

    # The tenant moves the address, copies the cluster under another name, and takes the profile away.
    inventory.write("east", {**good, "server": inventory.evil})
    inventory.problem("east", "does not have the address with which the cluster joined")
    inventory.write("west", good)
    inventory.problem("west", 'has joined as "east"')
    assert fed.kubectl.json("get", CLUSTERS, "east")["spec"]["apiEndpoint"] == inventory.server
    assert inventory.connections == []
    fed.kubectl("delete", PROFILES, "--all", "-n", "inventory")
    eventually(
        lambda: fed.kubectl.json("get", POLICIES, "from-ocm").get("status"),
        lambda seen: seen == {"selected": 0, "joined": 0},
        what="no profile",
    )
    assert inventory.clusters() == ["federatedcluster.core.kubeadmiral.io/east"]
    assert len(inventory.runs()) == 1


def test_a_profile_takes_no_name_of_another_cluster(inventory: Inventory) -> None:
    fed, name = inventory.fed, "taken"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-credentials", "namespace": "kube-admiral-system"},
        "data": {"own": base64.b64encode(b"content").decode()},
    }
    fed.kubectl.apply(secret)
    inventory.member.leave()
    runs = len(inventory.runs())
    inventory.write(name, {"server": inventory.server, "certificate-authority-data": inventory.ca})
    inventory.problem(name, "is not of this profile; delete it")
    spec = {"apiEndpoint": "https://127.0.0.1:1", "secretRef": {"name": "none"}}
    kind = {"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "FederatedCluster", "metadata": {"name": "mine"}}
    fed.kubectl.apply({**kind, "spec": spec})
    inventory.write("mine", {"server": inventory.server, "certificate-authority-data": inventory.ca})
    inventory.problem("mine", "the name is that of another cluster")
    assert fed.kubectl.json("get", CLUSTERS, "mine")["spec"]["apiEndpoint"] == "https://127.0.0.1:1"
    assert len(inventory.runs()) == runs
