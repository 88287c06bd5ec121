"""A federation of real Kubernetes clusters: `fedctl serve`, and members that joined with `fedctl join`.

`real_clusters` starts several clusters at the same time; the session fixture `clusters` of `conftest.py` shares three of
them between all modules, because a start takes half a minute. `real_federation` joins them to a new host for a block and
removes every trace from them afterwards, so that modules do not see each other's objects.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.kubernetes.cluster import Cluster, real_cluster
from tests.support.federation import Federation, Kubectl, eventually, fedctl, start_serve
from tests.support.manifests import a_policy

from federation.api import names

T = TypeVar("T")
MANAGED = "kubeadmiral.io/managed=true"
REGIONS = {"member-1": "beijing", "member-2": "beijing", "member-3": "shanghai"}
"""Names and regions of the members, as `fedctl up` gives them to simulated ones."""
_OWN_NAMESPACES = {"default", "kube-system", "kube-public", "kube-node-lease"}
_CLEAN_S = 90.0


class RealFederation(Federation):
    """A running `fedctl serve` whose members are real clusters."""

    def __init__(self, serve: Federation, clusters: Mapping[str, Cluster]) -> None:
        super().__init__(serve.directory, serve.process, serve.ready_line)
        self.clusters = clusters

    def member(self, name: str) -> Kubectl:
        """Return kubectl for one member."""
        return self.clusters[name].kubectl

    @property
    def members(self) -> list[str]:
        """The names of the members."""
        return sorted(self.clusters)

    def fedctl(self, *arguments: str, check: bool = True) -> str:
        """Run fedctl on the host and return its standard output."""
        return fedctl(*arguments, check=check, timeout_s=90, KUBECONFIG=str(self.kubectl.kubeconfig)).stdout

    def join(self, name: str, *arguments: str) -> str:
        """Join one of the clusters with its administrator's kubeconfig."""
        return self.fedctl("join", name, "--kubeconfig", str(self.clusters[name].kubeconfig), *arguments)

    def restarted(self) -> "RealFederation":
        """Start `fedctl serve` again on the same directory."""
        return RealFederation(start_serve(self.directory), self.clusters)


@contextmanager
def real_clusters(directory: Path, nodes: Sequence[int]) -> Iterator[list[Cluster]]:
    """Run clusters with so many nodes during the block."""
    stacks = [ExitStack() for _ in nodes]

    def start(position: int) -> Cluster:
        return stacks[position].enter_context(
            real_cluster(directory / f"cluster-{position + 1}", nodes=nodes[position])
        )

    try:
        yield in_parallel(start, range(len(nodes)))
    finally:
        in_parallel(ExitStack.close, stacks)


@contextmanager
def real_federation(directory: Path, clusters: Mapping[str, Cluster], **environment: str) -> Iterator[RealFederation]:
    """Run `fedctl serve` during the block, with these clusters as members."""
    serve = start_serve(directory / "host", **environment)
    with cleaned(list(clusters.values())), closing(RealFederation(serve, clusters)) as fed:
        for name in fed.members:
            fed.join(name, *(("--labels", f"region={REGIONS[name]}") if name in REGIONS else ()))
        yield fed


@contextmanager
def cleaned(clusters: Sequence[Cluster]) -> Iterator[None]:
    """Remove what a federation created in the clusters after the block."""
    try:
        yield
    finally:
        in_parallel(_clean, clusters)


def _clean(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    present = kubectl("get", "namespaces", "-o", "jsonpath={.items[*].metadata.name}").split()
    foreign = [name for name in present if name not in _OWN_NAMESPACES]
    workloads = "deployments,replicasets,statefulsets,daemonsets,jobs,cronjobs,pods"
    kubectl("delete", workloads, "-n", "default", "--all", "--wait=false")
    kinds = "configmaps,secrets,services,serviceaccounts"
    kubectl("delete", kinds, "-n", "default", "-l", MANAGED, "--wait=false")
    cluster_wide = (
        "validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies,"
        "validatingadmissionpolicybindings,apiservices,ingressclasses,priorityclasses,"
        "customresourcedefinitions,clusterroles,clusterrolebindings"
    )
    kubectl("delete", cluster_wide, "-l", MANAGED, "--wait=false", timeout_s=120)
    kubectl("delete", "roles,rolebindings", "-n", "kube-system", "-l", MANAGED, "--wait=false")
    if foreign:
        kubectl("delete", "namespaces", *foreign, "--wait=false")
    eventually(
        lambda: [
            *kubectl("get", workloads, "-n", "default", "-o", "name").split(),
            *(kubectl("get", "namespaces", *foreign, "--ignore-not-found", "-o", "name").split() if foreign else ()),
        ],
        lambda seen: not seen,
        timeout_s=_CLEAN_S,
        pause_s=0.5,
        what=f"{cluster.directory.name} without traces of a federation",
    )


def versions(fed: RealFederation, kinds: str) -> dict[str, dict[str, str]]:
    """Return the resourceVersions of everything the federation keeps in its members: they change with any write."""
    return {
        name: {
            f"{item['kind']} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}": item["metadata"][
                "resourceVersion"
            ]
            for item in fed.member(name).json("get", kinds, "-A", "-l", MANAGED)["items"]
        }
        for name in fed.members
    }


def a_labelled_policy(name: str, **spec: Any) -> dict[str, Any]:
    """Return a policy for the Deployments whose label `policy` names it, in any clusters."""
    made = a_policy({}, name=name, **spec)
    del made["spec"]["placement"]
    made["spec"]["resourceSelectors"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"policy": name}}}
    ]
    return made


def until_ready_in(fed: RealFederation, name: str, *members: str, namespace: str = "default") -> None:
    """Wait until just these members have a ready Deployment of this name."""
    eventually(lambda: ready_in(fed, name, namespace), lambda seen: seen == list(members), what=f"{name} in {members}")


def ready_in(fed: RealFederation, name: str, namespace: str = "default") -> list[str]:
    """Return the members with a ready Deployment of this name."""
    found = fed.in_members("deployments", name, namespace)
    return [member for member, obj in found.items() if (obj.get("status") or {}).get("readyReplicas")]


def scheduled(fed: RealFederation, name: str) -> dict[str, Any]:
    """Return the condition `Scheduled` of a Deployment, {} without one."""
    obj = fed.kubectl.json("get", "federatedobject", f"{name}-deployments.apps")
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == names.SCHEDULED), {})


def apply(kubectl: Kubectl, *manifests: Mapping[str, Any]) -> None:
    """Apply manifests from standard input."""
    kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, manifests)))


def in_parallel(work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
    """Return the results of `work` for each item, called in threads."""
    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(work, items))
