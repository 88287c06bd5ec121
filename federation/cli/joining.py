"""Joining and leaving: what `fedctl join`, `fedctl unjoin` and `fedctl up` write on the host, and the checks before it.

A join is a Secret with the member's credentials and a FederatedCluster that points to it; the cluster controller does
the rest. Before anything is written the member is asked who it is, so that a wrong kubeconfig, a cluster that is
already here, or one that belongs to another federation is refused with one line.
"""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, NAMESPACES, SECRETS, Object
from federation.base.clock import Clock
from federation.base.errors import (
    AlreadyExists,
    ApiError,
    ClusterError,
    ClusterUnreachable,
    ConfigurationError,
    FederationError,
    Forbidden,
    NotFound,
    RequestTimeout,
    Unauthorized,
)
from federation.client.connection import Connection, connection_from_secret
from federation.client.http import HTTPClient
from federation.client.kubeconfig import ask_plugin
from federation.client.protocol import Client, PatchType

_PROBE_TIMEOUT_S = 10.0
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
"""Of taints."""


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A cluster that should become a member."""

    name: str
    connection: Connection
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    use_service_account: bool = False


def parse_labels(text: str) -> dict[str, str]:
    """Parse `k=v,k2=v2`; ConfigurationError names the part that is wrong."""
    labels = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, separator, value = part.partition("=")
        if not separator or not key:
            raise ConfigurationError(f"--labels {part!r}: write key=value, several separated by commas")
        labels[key] = value
    return labels


def parse_taints(text: str) -> tuple[dict[str, str], ...]:
    """Parse `key=value:Effect,key:Effect`; ConfigurationError names the part that is wrong."""
    taints = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        rest, _, effect = part.rpartition(":")
        key, _, value = rest.partition("=")
        if not key or effect not in EFFECTS:
            raise ConfigurationError(
                f"--taints {part!r}: write key=value:Effect with Effect one of {', '.join(EFFECTS)}"
            )
        taints.append({"key": key, "value": value, "effect": effect})
    return tuple(taints)


async def join(host: Client, request: JoinRequest) -> None:
    """Check the member and write its Secret and FederatedCluster; ConfigurationError when it must not join."""
    await _refuse_duplicates(host, request)
    request = await _to_storable(request)
    await _probe(host, request)
    await _write_secret(host, request)
    try:
        await host.create(FEDERATED_CLUSTERS, _to_cluster(request), field_manager="fedctl")
    except AlreadyExists:
        raise ConfigurationError(
            f'cluster "{request.name}" is already joined; unjoin it first or choose another name'
        ) from None


async def ensure_joined(host: Client, request: JoinRequest) -> None:
    """Join, or bring an earlier join's endpoint and credentials up to date; labels given by users stay."""
    try:
        cluster = await host.get(FEDERATED_CLUSTERS, request.name)
    except NotFound:
        await join(host, request)
        return
    await _write_secret(host, request)
    if cluster["spec"]["apiEndpoint"] != request.connection.server:
        patch = {"spec": {"apiEndpoint": request.connection.server}}
        await host.patch(FEDERATED_CLUSTERS, request.name, patch, patch_type=PatchType.MERGE, field_manager="fedctl")


async def _refuse_duplicates(host: Client, request: JoinRequest) -> None:
    for cluster in (await host.list(FEDERATED_CLUSTERS)).items:
        name = cluster["metadata"]["name"]
        if name == request.name:
            raise ConfigurationError(
                f'cluster "{name}" is already joined; run `fedctl unjoin {name}` first or choose another name'
            )
        if cluster["spec"]["apiEndpoint"].rstrip("/") == request.connection.server.rstrip("/"):
            raise ConfigurationError(
                f'{request.connection.server} is already joined as "{name}"; run `fedctl unjoin {name}` first'
            )


async def _to_storable(request: JoinRequest) -> JoinRequest:
    """Return the request with credentials that a Secret can hold; ConfigurationError names the field that it cannot.

    Credentials that a program gives out end soon and the control plane cannot run the program. They are enough to make
    a service account of our own with them, so with `use_service_account` the program is run here, once.
    """
    connection = request.connection
    if connection.plugin is not None:
        if not request.use_service_account:
            raise ConfigurationError(
                f"users[].user.{connection.plugin.kind}: the control plane cannot run the program that gives out these"
                " credentials; add --use-service-account to swap them for a service account's in the member"
            )
        connection = (await ask_plugin(connection)).connection
    for value, field_name, remedy in (
        (connection.username, "users[].user.username", "use a client certificate or a token"),
        (connection.impersonate_user, "users[].user.as", "use the credentials of the account itself"),
        (connection.tls_server_name, "clusters[].cluster.tls-server-name", "use an address that the certificate names"),
        (connection.proxy_url, "clusters[].cluster.proxy-url", "the control plane has to reach the member directly"),
    ):
        if value:
            raise ConfigurationError(f"{field_name} is not supported for a member; {remedy}")
    storable = replace(request, connection=connection)
    if connection.server.startswith("https://") and not connection.ca_data and not connection.insecure:
        raise ConfigurationError(
            f"the kubeconfig for {connection.server} has no certificate-authority; add the CA of its certificate"
        )
    if not connection.token and not connection.client_cert_data:
        raise ConfigurationError(
            f"the kubeconfig's user for {connection.server} has no credentials; use a client certificate or a token"
        )
    connection_from_secret(_to_cluster(storable), _to_secret(storable), bootstrap=True)
    return storable


async def _probe(host: Client, request: JoinRequest) -> None:
    server = request.connection.server
    member = HTTPClient(request.connection)
    try:
        code, _ = await member.raw("GET", "/version", timeout_s=_PROBE_TIMEOUT_S)
        if code in (401, 403):
            raise ConfigurationError(f"{server} refuses the kubeconfig's credentials (it answers {code})")
        if code != 200:
            raise ConfigurationError(f"{server} answers {code} to GET /version; is it a Kubernetes API server?")
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            namespace = await member.get(NAMESPACES, names.SYSTEM_NAMESPACE)
    except NotFound:
        return
    except (RequestTimeout, TimeoutError):
        raise ConfigurationError(f"{server} does not answer within {_PROBE_TIMEOUT_S:g} s; check the network") from None
    except (Unauthorized, Forbidden) as error:
        raise ConfigurationError(f"{server} refuses the kubeconfig's credentials: {error.message}") from None
    except ClusterUnreachable as error:
        raise ConfigurationError(f"{server} cannot be reached: {error}") from None
    except (ApiError, ClusterError) as error:
        raise ConfigurationError(f"{server} gives no usable answer: {error}") from None
    finally:
        await member.close()
    if namespace["metadata"].get("deletionTimestamp"):
        return  # An earlier membership is being cleaned up; the controller waits for that.
    uid = (namespace["metadata"].get("annotations") or {}).get(names.FEDERATED_CLUSTER_UID)
    if uid is None:
        return
    owner = next((c for c in (await host.list(FEDERATED_CLUSTERS)).items if c["metadata"]["uid"] == uid), None)
    if owner is not None:
        name = owner["metadata"]["name"]
        raise ConfigurationError(f'{server} is already joined as "{name}"; run `fedctl unjoin {name}` first')
    raise ConfigurationError(
        f"{server} belongs to another federation (namespace {names.SYSTEM_NAMESPACE} carries its uid {uid});"
        " unjoin it there, or delete that namespace if that federation no longer exists"
    )


def _to_cluster(request: JoinRequest) -> Object:
    spec: dict[str, Any] = {
        "apiEndpoint": request.connection.server,
        "secretRef": {"name": _secret_name(request.name)},
    }
    if request.connection.insecure or request.connection.server.startswith("http://"):
        spec["insecure"] = True
    if request.use_service_account:
        spec["useServiceAccount"] = True
    if request.taints:
        spec["taints"] = [dict(taint) for taint in request.taints]
    return {
        "apiVersion": FEDERATED_CLUSTERS.api_version,
        "kind": "FederatedCluster",
        "metadata": {"name": request.name, "labels": dict(request.labels)},
        "spec": spec,
    }


def _secret_name(cluster: str) -> str:
    return f"{cluster}-credentials"


def _to_secret(request: JoinRequest) -> Object:
    connection = request.connection
    values = {
        names.SECRET_CA: connection.ca_data,
        names.SECRET_CLIENT_CERTIFICATE: connection.client_cert_data,
        names.SECRET_CLIENT_KEY: connection.client_key_data,
        names.SECRET_BOOTSTRAP_TOKEN: connection.token.encode() if connection.token else None,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _secret_name(request.name), "namespace": names.SYSTEM_NAMESPACE},
        "type": "Opaque",
        "data": {key: base64.b64encode(value).decode() for key, value in values.items() if value},
    }


async def _write_secret(host: Client, request: JoinRequest) -> None:
    await host.patch(
        SECRETS,
        _secret_name(request.name),
        _to_secret(request),
        patch_type=PatchType.APPLY,
        namespace=names.SYSTEM_NAMESPACE,
        field_manager="fedctl",
        force=True,
    )


async def wait_ready(host: Client, cluster: str, clock: Clock, timeout_s: float) -> None:
    """Return when the cluster is joined and Ready; FederationError with the last condition when it takes too long."""
    deadline = clock.monotonic() + timeout_s
    while True:
        state = await host.get(FEDERATED_CLUSTERS, cluster)
        conditions = {c["type"]: c for c in (state.get("status") or {}).get("conditions", ())}
        joined, ready = conditions.get(names.CLUSTER_JOINED, {}), conditions.get(names.CLUSTER_READY, {})
        if joined.get("status") == "True" and ready.get("status") == "True":
            return
        if joined.get("reason") in ("ClusterUnjoinable", "JoinTimeoutExceeded"):
            raise ConfigurationError(f'cluster "{cluster}" cannot join: {joined.get("message") or joined["reason"]}')
        if clock.monotonic() >= deadline:
            last = ready if joined.get("status") == "True" else joined
            why = last.get("message") or last.get("reason") or "the control plane has not looked at it yet"
            raise FederationError(f'cluster "{cluster}" is not ready after {timeout_s:g} s: {why}')
        await clock.sleep(0.1)


async def unjoin(host: Client, cluster: str, clock: Clock, timeout_s: float) -> None:
    """Delete the FederatedCluster and its Secret, waiting until the member has been cleaned."""
    try:
        uid = (await host.get(FEDERATED_CLUSTERS, cluster))["metadata"]["uid"]
        await host.delete(FEDERATED_CLUSTERS, cluster, uid=uid)
    except NotFound:
        raise ConfigurationError(f'cluster "{cluster}" is not joined; `fedctl clusters` lists those that are') from None
    deadline = clock.monotonic() + timeout_s
    while True:
        try:
            state = await host.get(FEDERATED_CLUSTERS, cluster)
        except NotFound:
            break
        if state["metadata"]["uid"] != uid:
            return
        if clock.monotonic() >= deadline:
            held = ", ".join(state["metadata"].get("finalizers", ()))
            raise FederationError(
                f'cluster "{cluster}" is still leaving after {timeout_s:g} s (waits for: {held});'
                " it goes on in the background"
            )
        await clock.sleep(0.2)
    try:
        await host.delete(SECRETS, _secret_name(cluster), names.SYSTEM_NAMESPACE)
    except NotFound:
        return
