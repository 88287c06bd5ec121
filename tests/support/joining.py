"""A simulated cluster that joins a running federation with `fedctl`, for tests of joining.

The cluster is the product's own API server over HTTPS and enforces RBAC, so an account in it has exactly its rights.
"""

import asyncio
import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from federation.simulator.control import send_command
from federation.simulator.failures import FailureCommand, Verb
from tests.support.federation import Federation, Kubectl, eventually, fedctl
from tests.support.rest import Object

NAMESPACE = "kube-admiral-system"
ROLE = "kubeadmiral-controller-manager:kubeadmiral-member"


class Member:
    """A cluster that joins as `name`."""

    def __init__(self, fed: Federation, name: str, kubeconfig: Path) -> None:
        self.fed = fed
        self.name = name
        self.kubectl = Kubectl(kubeconfig)
        self.document: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())

    def fedctl(self, *arguments: str, check: bool = True) -> str:
        """Run fedctl on the host; return standard output, or standard error without `check`."""
        done = fedctl(*arguments, check=check, KUBECONFIG=str(self.fed.kubectl.kubeconfig))
        return done.stdout if check else done.stderr

    def join(self, kubeconfig: Path, *more: str, check: bool = True) -> str:
        """Join with this kubeconfig of the member."""
        return self.fedctl("join", self.name, "--kubeconfig", str(kubeconfig), *more, check=check)

    def update_credentials(self, kubeconfig: Path | None = None, *, check: bool = True) -> str:
        """Replace the credentials, with the stored ones if no kubeconfig is given."""
        given = ["--kubeconfig", str(kubeconfig)] if kubeconfig is not None else []
        return self.fedctl("join", "--update-credentials", self.name, *given, check=check)

    def unjoin(self, *options: str) -> str:
        """Leave the federation."""
        return self.fedctl("unjoin", self.name, *options)

    def leave(self) -> None:
        """Leave the federation if the cluster is in it: the end of a test."""
        self.clear()
        eventually(self.system_namespace, lambda seen: seen is None, what="the system namespace gone")

    def clear(self) -> None:
        """Leave the federation if the cluster is in it, and delete what it keeps: nothing stands in the next test's way."""
        if self.is_joined():
            self.unjoin()
        self.kubectl("delete", "deployments", "--all", "-n", "default")
        self.fed.kubectl("delete", "leftovers", "--all")

    def is_joined(self) -> bool:
        return self.fed.kubectl.api("").exists("federatedclusters", self.name)

    def variant(self, path: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Path:
        """Write the cluster's kubeconfig with another user, and another cluster entry when given."""
        document = json.loads(json.dumps(self.document))
        document["users"][0]["user"] = user
        if cluster is not None:
            document["clusters"][0]["cluster"] = {"server": document["clusters"][0]["cluster"]["server"], **cluster}
        path.write_text(yaml.safe_dump(document))
        return path

    def token(self, role: str = "cluster-admin") -> str:
        """Create a service account with a ClusterRole in the cluster and return its token."""
        account = f"test-{role}"
        self.kubectl.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": "default"}},
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": account},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
            },
        )
        return self.kubectl("create", "token", account, "-n", "default").strip()

    def secret(self) -> dict[str, str]:
        """Return the decoded data of the member's Secret on the host."""
        data = self.fed.kubectl.api(NAMESPACE).get("secrets", f"{self.name}-credentials")["data"]
        return {key: base64.b64decode(value).decode() for key, value in data.items()}

    def as_account(self, path: Path) -> Kubectl:
        """Return kubectl with the token that the host stores."""
        return Kubectl(self.variant(path, {"token": self.secret()["service-account-token-data"]}))

    def refused(self, done: "subprocess.CompletedProcess[str]") -> bool:
        """Return whether the member refused a command as Forbidden."""
        return done.returncode != 0 and "forbidden" in done.stderr.lower()

    def condition(self, type_: str) -> dict[str, str]:
        """Return a condition of the FederatedCluster, {} if there is none."""
        status = self.fed.kubectl.api("").get("federatedclusters", self.name).get("status") or {}
        return next((c for c in status.get("conditions") or () if c["type"] == type_), {})

    def until_authorized(self, reason: str) -> dict[str, str]:
        """Wait for the condition Authorized with this reason and return it."""
        found: dict[str, str] = eventually(
            lambda: self.condition("Authorized"),
            lambda seen: seen.get("reason") == reason,
            what=f"Authorized: {reason}",
        )
        return found

    def system_namespace(self) -> Object | None:
        """Return the federation's namespace in the member, None without one."""
        return self.kubectl.api("").find("namespaces", NAMESPACE)

    def traces(self) -> str:
        """Return the names of everything in the member that a join creates."""
        cluster = self.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
        local = self.kubectl("get", "serviceaccounts,secrets,roles,rolebindings", "-A", "-o", "name")
        found = [line for line in (cluster + local).splitlines() if "kubeadmiral" in line]
        return "\n".join(found + (["namespace"] if self.system_namespace() else []))

    def runs_web(self) -> bool:
        """Return whether the Deployment `web` has three ready replicas in the member."""
        web = self.kubectl.api().find("deployments", "web") or {}
        return (web.get("status") or {}).get("readyReplicas") == 3


def assert_works(member: Member) -> None:
    """Wait until the Deployment `web` runs in the member."""
    eventually(member.runs_web, bool, what="web in the member")


POLICY: dict[str, Any] = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "everything", "namespace": "default"},
    "spec": {
        "schedulingMode": "Duplicate",
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
    },
}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
        },
    },
}


@contextmanager
def hanging(directory: Path, name: str = "member-1") -> Iterator[None]:
    """Freeze a cluster of `free_clusters(directory, …)` for the block, so that its connections hang."""
    asyncio.run(send_command(directory, FailureCommand(Verb.HANG, name)))
    try:
        yield
    finally:
        asyncio.run(send_command(directory, FailureCommand(Verb.START, name)))
