"""Join and unjoin member clusters: the checks before, and the objects that `fedctl join`, `unjoin` and `up` write.

A join creates a FederatedCluster and a Secret with credentials; the cluster controller does the rest. By default the
kubeconfig is used here only, to create a service account in the member (`membercredentials.py`), and the Secret has the
account's token. The member is queried before anything is written, so that a wrong kubeconfig, a cluster that already
joined, and a member of another federation are rejected with one line.
"""

import asyncio
import base64
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.conditions import find
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import (
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
from federation.apimachinery.listening import Patience
from federation.apimachinery.progress import Report, unreported
from federation.apimachinery.resources import NAMESPACES, SECRETS, Object
from federation.cli import membercredentials
from federation.cli.joinpreview import Item, foresee_join
from federation.client.accounttoken import parse_account_token
from federation.client.client import Client, PatchType
from federation.client.clustersecret import connection_from_secret, is_pulled, secret_name_of
from federation.client.http import HTTPClient
from federation.client.identity import cluster_uid
from federation.client.kubeconfig import fetch_credentials
from federation.plans.unknownnames import not_joined
from federation.scheduling.framework.types import Effect

_PROBE_TIMEOUT_S = 10.0
_ACCOUNT_TIMEOUT_S = 30.0
"""How long the member may take for each step of creating the account."""
_UNDO_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A cluster to join, and the options of its FederatedCluster."""

    name: str
    connection: Connection
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    use_service_account: bool = True
    """Create an account in the member and store its token; False stores the credentials of the connection."""


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
        if not key or effect not in tuple(Effect):
            raise ConfigurationError(
                f"--taints {part!r}: write key=value:Effect with Effect one of {', '.join(Effect)}"
            )
        taints.append({"key": key, "value": value, "effect": effect})
    return tuple(taints)


async def join(host: Client, request: JoinRequest, clock: Clock | None = None, report: Report = unreported) -> None:
    """Check the member and write its FederatedCluster and Secret; ConfigurationError when it cannot join.

    A join that fails leaves nothing in the member and nothing on the host.
    """
    await _reject_duplicates(host, request)
    await _join(host, request, clock or SystemClock(), report)


async def preview(host: Client, request: JoinRequest, report: Report = unreported) -> tuple[list[Item], list[str]]:
    """Check the member as a join does; return what a join does with what it has, and the kinds that are not known.

    ConfigurationError when it cannot join.
    """
    await _reject_duplicates(host, request)
    report(f"checking {request.connection.server}")
    request = await _with_usable_credentials(request)
    async with membercredentials.connected(request.connection) as member:
        await _check_member(host, member, request.connection.server)
        report(f"looking at the objects in {request.connection.server}")
        return await foresee_join(host, member, request.name)


async def _join(host: Client, request: JoinRequest, clock: Clock, report: Report = unreported) -> None:
    report(f"checking {request.connection.server}")
    request = await _with_usable_credentials(request)
    async with membercredentials.connected(request.connection) as member:
        await _check_member(host, member, request.connection.server)
        if not request.use_service_account:
            await _write_given_credentials(host, request)
            await _create_cluster(host, request)
            return
        cluster = await _create_cluster(host, request)
        try:
            report(f"creating a service account in {request.connection.server}")
            token = await membercredentials.create_account(host, member, cluster, clock, _ACCOUNT_TIMEOUT_S)
            connection = _to_stored_connection(request, token)
            report(f"waiting until {request.connection.server} accepts the account's token")
            await membercredentials.wait_usable(connection, request.name, None, clock, _ACCOUNT_TIMEOUT_S)
            values = {names.SECRET_SERVICE_ACCOUNT_TOKEN: token.encode(), names.SECRET_CA: connection.ca_data or None}
            left_over: dict[str, bytes | None] = dict.fromkeys(names.SECRET_BOOTSTRAP_KEYS)
            await membercredentials.write_secret(host, secret_name_of(request.name), {**left_over, **values})
        except BaseException as error:
            if remains := await _undo(host, member, cluster, clock):
                raise ConfigurationError(f"{error}; {remains}") from error
            raise


async def _undo(host: Client, member: Client, cluster: Object, clock: Clock) -> str:
    """Remove what a failed join wrote to the member and to the host; return what remains, "" if nothing does."""
    remains = await membercredentials.remove_account(member, cluster)
    try:
        await unjoin(host, cluster["metadata"]["name"], clock, _UNDO_TIMEOUT_S)
    except FederationError as error:
        return f"{remains}; {error}" if remains else str(error)
    return remains


async def withdraw(host: Client, request: JoinRequest, clock: Clock, timeout_s: float) -> None:
    """Undo a join that the control plane refused: in the member with the given credentials, then on the host."""
    cluster = await host.get(FEDERATED_CLUSTERS, request.name)
    if request.use_service_account:
        request = await _with_usable_credentials(request)
        async with membercredentials.connected(request.connection) as member:
            await membercredentials.remove_account(member, cluster)
    await unjoin(host, request.name, clock, timeout_s)


async def ensure_joined(host: Client, request: JoinRequest, clock: Clock | None = None) -> None:
    """Join, or update endpoint and credentials of a cluster that joined earlier; its labels stay as users set them.

    The caller knows that no other cluster has this address: each of 1,000 joins would list all clusters otherwise.
    """
    clock = clock or SystemClock()
    try:
        cluster = await host.get(FEDERATED_CLUSTERS, request.name)
    except NotFound:
        await _join(host, request, clock)
        return
    if not cluster["spec"].get("useServiceAccount"):
        await _write_given_credentials(host, request)
    if cluster["spec"]["apiEndpoint"] != request.connection.server:
        patch = {"spec": {"apiEndpoint": request.connection.server}}
        await host.patch(FEDERATED_CLUSTERS, request.name, patch, patch_type=PatchType.MERGE, field_manager="fedctl")
    if cluster["spec"].get("useServiceAccount") and await _is_token_used_up(host, request.name, clock):
        await membercredentials.replace_credentials(host, request.name, request.connection, clock, _ACCOUNT_TIMEOUT_S)


async def _is_token_used_up(host: Client, name: str, clock: Clock) -> bool:
    """Return whether the stored token is missing or has expired, as after a long time without a control plane."""
    try:
        secret = await host.get(SECRETS, secret_name_of(name), names.SYSTEM_NAMESPACE)
    except NotFound:
        return True
    encoded = (secret.get("data") or {}).get(names.SECRET_SERVICE_ACCOUNT_TOKEN) or ""
    token = parse_account_token(base64.b64decode(encoded).decode("ascii", errors="replace"))
    return not encoded or (token is not None and token.expires is not None and token.expires <= clock.now())


async def _create_cluster(host: Client, request: JoinRequest) -> Object:
    try:
        return await host.create(FEDERATED_CLUSTERS, _to_cluster(request), field_manager="fedctl")
    except AlreadyExists:
        raise ConfigurationError(
            f'cluster "{request.name}" is already joined; unjoin it first or choose another name'
        ) from None


def _to_stored_connection(request: JoinRequest, token: str) -> Connection:
    """Return the connection that the control plane will use: the address and CA of the kubeconfig, and the token."""
    given = request.connection
    insecure = given.insecure or given.server.startswith("http://")
    return Connection(given.server, ca_data=b"" if insecure else given.ca_data, token=token, insecure=insecure)


async def _reject_duplicates(host: Client, request: JoinRequest) -> None:
    for cluster in (await host.list(FEDERATED_CLUSTERS)).items:
        name = cluster["metadata"]["name"]
        if name == request.name:
            raise ConfigurationError(
                f'cluster "{name}" is already joined; run `fedctl unjoin {name}` first or choose another name'
            )
        # Addresses of clusters in pull mode are those of other networks.
        if not is_pulled(cluster) and cluster["spec"]["apiEndpoint"].rstrip("/") == request.connection.server.rstrip(
            "/"
        ):
            raise ConfigurationError(
                f'{request.connection.server} is already joined as "{name}"; run `fedctl unjoin {name}` first'
            )


async def _with_usable_credentials(request: JoinRequest) -> JoinRequest:
    """Return the request with credentials that this join can use; ConfigurationError names a field that it cannot.

    The control plane must reach the member with what a Secret can hold. Credentials that only create the account here
    may be of any kind; those of a credential plugin are fetched once.
    """
    connection = request.connection
    if connection.plugin is not None:
        if not request.use_service_account:
            raise ConfigurationError(
                f"users[].user.{connection.plugin.kind}: the control plane cannot run this credential plugin;"
                " join without --use-given-credentials to create a service account in the member"
            )
        connection = (await fetch_credentials(connection)).connection
    _reject_unsupported_fields(request, connection)
    if connection.server.startswith("https://") and not connection.ca_data and not connection.insecure:
        raise ConfigurationError(
            f"the kubeconfig for {connection.server} has no certificate-authority; add the CA of its certificate"
        )
    if not (connection.token or connection.client_cert_data or connection.username or connection.token_file):
        raise ConfigurationError(
            f"the kubeconfig's user for {connection.server} has no credentials; use a client certificate or a token"
        )
    request = replace(request, connection=connection)
    if request.use_service_account:
        connection.to_tls()
    else:  # raises when a key is malformed
        connection_from_secret(_to_cluster(request), _to_secret(request), bootstrap=True)
    return request


def _reject_unsupported_fields(request: JoinRequest, connection: Connection) -> None:
    fields = [
        (connection.tls_server_name, "clusters[].cluster.tls-server-name", "use an address in the certificate"),
        (connection.proxy_url, "clusters[].cluster.proxy-url", "the control plane must reach the member directly"),
    ]
    if not request.use_service_account:
        fields += [
            (connection.username, "users[].user.username", "use a client certificate or a token"),
            (connection.impersonate_user, "users[].user.as", "use the credentials of the account itself"),
        ]
    for value, field_name, remedy in fields:
        if value:
            raise ConfigurationError(f"{field_name} is not supported for a member; {remedy}")


async def _check_member(host: Client, member: HTTPClient, server: str) -> None:
    """Raise ConfigurationError unless the member responds, accepts the credentials and is in no federation."""
    try:
        code, _ = await member.raw("GET", "/version", timeout_s=_PROBE_TIMEOUT_S)
        if code in (401, 403):
            raise ConfigurationError(f"{server} refuses the kubeconfig's credentials (status code {code})")
        if code != 200:
            raise ConfigurationError(f"{server} returns {code} for GET /version; is it a Kubernetes API server?")
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            found, host_uid = await cluster_uid(member.transport), await cluster_uid(host.transport)
            if found and found == host_uid:
                raise ConfigurationError(f"{server} is the host of this federation; a federation cannot join itself")
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
        raise ConfigurationError(f"{server} does not respond as a Kubernetes API server: {error}") from None
    if namespace["metadata"].get("deletionTimestamp"):
        return  # The previous membership is being cleaned up; the cluster controller waits for that.
    annotations = namespace["metadata"].get("annotations") or {}
    uid = annotations.get(names.FEDERATED_CLUSTER_UID)
    if uid is None:
        return
    owner = next((c for c in (await host.list(FEDERATED_CLUSTERS)).items if c["metadata"]["uid"] == uid), None)
    if owner is not None:
        name = owner["metadata"]["name"]
        raise ConfigurationError(f'{server} is already joined as "{name}"; run `fedctl unjoin {name}` first')
    if host_uid and str(annotations.get(names.HOST_CLUSTER_UIDS, "")).split(",")[0] == host_uid:
        return  # It left this federation by force; the control plane takes its own claim over.
    raise ConfigurationError(
        f"{server} belongs to another federation (its namespace {names.SYSTEM_NAMESPACE} has the annotation"
        f" {names.FEDERATED_CLUSTER_UID}: {uid});"
        " unjoin it there, or delete the namespace if that federation no longer exists"
    )


def _to_cluster(request: JoinRequest) -> Object:
    spec: dict[str, Any] = {
        "apiEndpoint": request.connection.server,
        "secretRef": {"name": secret_name_of(request.name)},
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
        "metadata": {"name": secret_name_of(request.name), "namespace": names.SYSTEM_NAMESPACE},
        "type": "Opaque",
        "data": {key: base64.b64encode(value).decode() for key, value in values.items() if value},
    }


async def _write_given_credentials(host: Client, request: JoinRequest) -> None:
    await host.patch(
        SECRETS,
        secret_name_of(request.name),
        _to_secret(request),
        patch_type=PatchType.APPLY,
        namespace=names.SYSTEM_NAMESPACE,
        field_manager="fedctl",
        force=True,
    )


async def wait_ready(host: Client, cluster: str, clock: Clock, timeout_s: float, report: Report = unreported) -> None:
    """Wait until the cluster is joined and Ready; FederationError with the last condition after `timeout_s`.

    ConfigurationError when the control plane refuses the cluster: waiting longer is of no use.
    """
    patience = Patience(clock, timeout_s)
    while True:
        state = await host.get(FEDERATED_CLUSTERS, cluster)
        conditions = (state.get("status") or {}).get("conditions")
        joined, ready = (find(conditions, type_) or {} for type_ in (names.CLUSTER_JOINED, names.CLUSTER_READY))
        if joined.get("status") == "True" and ready.get("status") == "True":
            return
        if joined.get("reason") in ("ClusterUnjoinable", "JoinTimeoutExceeded"):
            raise ConfigurationError(f'cluster "{cluster}" cannot join: {joined.get("message") or joined["reason"]}')
        last = ready if joined.get("status") == "True" else joined
        why = last.get("message") or last.get("reason") or "the control plane has not processed it yet"
        report(f'waiting until cluster "{cluster}" is ready: {why}')
        if patience.is_over():
            raise FederationError(f'cluster "{cluster}" is not ready after {timeout_s:g} s: {why}')
        await clock.sleep(0.1)


async def unjoin(
    host: Client,
    cluster: str,
    clock: Clock,
    timeout_s: float,
    *,
    is_removing: bool | None = None,
    reason: str = "",
    report: Report = unreported,
) -> bool:
    """Delete the FederatedCluster, wait until the member is cleaned up, and delete its Secret.

    With `is_removing` the member's objects are deleted, too; False withdraws what its annotation says. With a `reason`
    the member is given up: the control plane cleans up what answers, and records the rest. Returns whether its objects
    were deleted: its annotation may say so.
    """
    try:
        state = await host.get(FEDERATED_CLUSTERS, cluster)
        uid, annotations = state["metadata"]["uid"], state["metadata"].get("annotations") or {}
        wanted: dict[str, str | None] = {names.FORCED_REMOVAL: reason} if reason else {}
        if is_removing or (is_removing is False and names.CASCADING_DELETE in annotations):
            wanted[names.CASCADING_DELETE] = "true" if is_removing else None
        if wanted:
            marked = {"metadata": {"uid": uid, "annotations": wanted}}
            await host.patch(FEDERATED_CLUSTERS, cluster, marked, field_manager="fedctl")
        await host.delete(FEDERATED_CLUSTERS, cluster, uid=uid)
    except NotFound:
        raise await not_joined(host, cluster) from None
    is_emptied = not reason and {**annotations, **wanted}.get(names.CASCADING_DELETE) == "true"
    patience = Patience(clock, timeout_s)
    while True:
        try:
            state = await host.get(FEDERATED_CLUSTERS, cluster)
        except NotFound:
            break
        if state["metadata"]["uid"] != uid:
            return is_emptied  # A new cluster of that name has joined meanwhile; the Secret is its own.
        finalizers = ", ".join(state["metadata"].get("finalizers", ()))
        report(f'waiting until cluster "{cluster}" is cleaned up (finalizers: {finalizers})')
        if patience.is_over():
            remedy = f"; to keep what it has: fedctl unjoin {cluster} --keep" if is_emptied else ""
            remedy += "" if reason else f"; if it is lost: fedctl unjoin {cluster} --force --reason TEXT"
            raise FederationError(
                f'cluster "{cluster}" is still leaving after {timeout_s:g} s (finalizers: {finalizers});'
                f" it continues in the background{remedy}"
            )
        await clock.sleep(0.2)
    with contextlib.suppress(NotFound):
        await host.delete(SECRETS, secret_name_of(cluster), names.SYSTEM_NAMESPACE)
    return is_emptied
