"""Whether and how the cluster of a ClusterProfile joins. Pure.

All of a profile is written by somebody who need not be an administrator here. It chooses among programs and servers of
the administrator's list, and everything else in it is data.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.conditions import find
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import EVERYTHING, Selector, SelectorError, compile_label_selector
from federation.client.clustersecret import secret_name_of
from federation.features.clusterprofiles.names import JOINED_PROFILE
from federation.features.clusterprofiles.rules import is_ours
from federation.planning.clusters.accessproviders import Providers

EXEC_EXTENSION = "client.authentication.k8s.io/exec"
"""The extension of a profile's cluster that is passed to the program as data."""
_UNUSABLE = ("certificate-authority", "insecure-skip-tls-verify", "proxy-url", "tls-server-name")
"""Fields of a profile's cluster that would read a file here, or trust somebody whom the administrator did not name."""


class JoinPolicy(NamedTuple):
    """A compiled ClusterJoinPolicy."""

    name: str
    spec: Mapping[str, Any]
    selector: Selector
    problem: str = ""
    """The reason why it selects nothing."""

    def selects(self, profile: Mapping[str, Any]) -> bool:
        """Return whether the cluster of a profile joins by it."""
        if self.problem or is_ours(profile):
            return False
        metadata, managers = profile["metadata"], self.spec.get("managers")
        manager = ((profile.get("spec") or {}).get("clusterManager") or {}).get("name")
        if metadata.get("namespace") not in self.spec["namespaces"] or (managers and manager not in managers):
            return False
        return self.selector.matches(metadata.get("labels") or {})


class Access(NamedTuple):
    """The provider that gives credentials for a cluster, the server, and what its program is told beside it."""

    provider: str
    connection: Connection
    config: Object | None = None


def compile_join_policy(source: Mapping[str, Any]) -> JoinPolicy:
    """Return the compiled form of a ClusterJoinPolicy."""
    spec, name = source.get("spec") or {}, str(source["metadata"]["name"])
    try:
        selector = compile_label_selector(spec["selector"]) if spec.get("selector") else EVERYTHING
    except SelectorError as problem:
        return JoinPolicy(name, spec, EVERYTHING, f"spec.selector: {problem}")
    return JoinPolicy(name, spec, selector)


def first_policy(policies: Iterable[JoinPolicy], profile: Mapping[str, Any]) -> JoinPolicy | None:
    """Return the first policy by name that selects a profile."""
    return min((each for each in policies if each.selects(profile)), key=lambda each: each.name, default=None)


def choose_access(
    profile: Mapping[str, Any], providers: Providers, policy: JoinPolicy, joins_at: str | None = None
) -> Access:
    """Return the first provider of the administrator's list that policy and profile name; ConfigurationError.

    `joins_at` is the address of a cluster that has begun to join: credentials for another one must not be sent there.
    """
    offered = _offered(profile)
    allowed = [name for name in providers if name in policy.spec["providers"]]
    if not allowed:
        wanted = ", ".join(policy.spec["providers"])
        raise ConfigurationError(
            f"no provider of the policy ({wanted}) is in the list of the setting cluster-providers-file"
        )
    name = next((name for name in allowed if name in offered), None)
    if name is None:
        found = ", ".join(sorted(offered)) or "none"
        raise ConfigurationError(f"status.accessProviders has none of {', '.join(allowed)}; it has {found}")
    cluster, field = offered[name], f"status.accessProviders[{name}].cluster"
    server = str(cluster.get("server") or "")
    if not providers[name].serves(server):
        raise ConfigurationError(
            f"{field}.server: {server!r} is not among the servers that the administrator's list has for {name}; its"
            " credentials are not sent there"
        )
    if joins_at is not None and server.rstrip("/") != joins_at.rstrip("/"):
        raise ConfigurationError(
            f"{field}.server: the cluster has begun to join at {joins_at}; unjoin it, and it joins at {server}"
        )
    for each in _UNUSABLE:
        if cluster.get(each):
            raise ConfigurationError(f"{field}.{each} is not supported; the server must be verified by inline data")
    return Access(name, Connection(server.rstrip("/"), ca_data=_ca(cluster, field)), _exec_config(cluster))


def servers_of(profile: Mapping[str, Any]) -> frozenset[str]:
    """Return the addresses of a profile's cluster."""
    return frozenset(str(cluster.get("server") or "").rstrip("/") for cluster in _offered(profile).values())


def _offered(profile: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the clusters of the providers by name; those of accessProviders go before those of the earlier field."""
    status = profile.get("status") or {}
    found: dict[str, Mapping[str, Any]] = {}
    for entry in (*(status.get("credentialProviders") or ()), *(status.get("accessProviders") or ())):
        cluster = entry.get("cluster")
        found[str(entry.get("name") or "")] = cluster if isinstance(cluster, dict) else {}
    return found


def _ca(cluster: Mapping[str, Any], field: str) -> bytes:
    given = cluster.get("certificate-authority-data")
    if not given:
        raise ConfigurationError(
            f"{field}.certificate-authority-data is missing; the server cannot be verified without it"
        )
    try:
        return base64.b64decode(str(given), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigurationError(f"{field}.certificate-authority-data is not base64") from None


def _exec_config(cluster: Mapping[str, Any]) -> Object | None:
    extensions = cluster.get("extensions") or ()
    found = next((each for each in extensions if isinstance(each, dict) and each.get("name") == EXEC_EXTENSION), {})
    config = found.get("extension")
    return config if isinstance(config, dict) else None


def to_cluster(profile: Mapping[str, Any], policy: JoinPolicy, server: str) -> Object:
    """Return the FederatedCluster that joins; its account of its own replaces the credentials of the provider."""
    metadata, spec = profile["metadata"], policy.spec
    own = metadata.get("labels") or {}
    copied = {key: own[key] for key in spec.get("copiedLabels") or () if key in own}
    taints = {"taints": [dict(each) for each in spec["taints"]]} if spec.get("taints") else {}
    return {
        "apiVersion": FEDERATED_CLUSTERS.api_version,
        "kind": FEDERATED_CLUSTERS.kind,
        "metadata": {
            "name": metadata["name"],
            "labels": {**copied, **(spec.get("labels") or {})},
            "annotations": {JOINED_PROFILE: title_of(profile)},
        },
        "spec": {
            "apiEndpoint": server,
            "secretRef": {"name": secret_name_of(metadata["name"])},
            "useServiceAccount": True,
            **taints,
        },
    }


def title_of(profile: Mapping[str, Any]) -> str:
    """Return namespace/name."""
    return f"{profile['metadata']['namespace']}/{profile['metadata']['name']}"


def profile_of(obj: Mapping[str, Any]) -> str:
    """Return namespace/name of the profile that a FederatedCluster or its Secret belongs to, "" for none."""
    return str((obj["metadata"].get("annotations") or {}).get(JOINED_PROFILE) or "")


def has_joined(cluster: Mapping[str, Any]) -> bool:
    """Return whether a cluster has joined, so that it has its own account."""
    return bool((cluster.get("status") or {}).get("joinPerformed"))


def is_given_up(cluster: Mapping[str, Any]) -> bool:
    """Return whether a cluster has not joined in time, so that its join has ended."""
    condition = find((cluster.get("status") or {}).get("conditions"), names.CLUSTER_JOINED) or {}
    return condition.get("reason") == names.REASON_JOIN_TIMEOUT_EXCEEDED and not has_joined(cluster)


def failure_of(cluster: Mapping[str, Any]) -> str:
    """Return why a cluster could not join so far, "" if nothing is known."""
    condition = find((cluster.get("status") or {}).get("conditions"), names.CLUSTER_JOINED) or {}
    return str(condition.get("message") or "") if condition.get("status") == "False" else ""
