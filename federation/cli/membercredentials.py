"""Create and replace the control plane's account in a member, from the machine where `fedctl join` runs.

The kubeconfig of the member's administrator is used here only: the host stores the account's token and the CA. A
replacement creates a second account, stores its token, waits until the control plane uses it, and removes the first
account, which revokes every token of it. The member's identity is checked before anything is written.
"""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from federation.api import names
from federation.api.federatedtype import FederatedType, parse_configs
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS
from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    ClusterIdentityMismatch,
    ConfigurationError,
    FederationError,
    Forbidden,
    NotFound,
    Unauthorized,
)
from federation.apimachinery.listening import Patience
from federation.apimachinery.progress import Report, unreported
from federation.apimachinery.resources import NAMESPACES, SECRETS, Object
from federation.client.accounttoken import parse_account_token
from federation.client.client import Client, PatchType
from federation.client.clustersecret import ca_of, connection_from_secret, server_of
from federation.client.http import HTTPClient
from federation.client.identity import Identity, check_identity, identity_of
from federation.client.kubeconfig import fetch_credentials
from federation.client.session import HTTPOptions
from federation.controllers.cluster import memberaccount, memberjoin
from federation.plans.unknownnames import not_joined

T = TypeVar("T")
_REQUEST_TIMEOUT_S = 10.0
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Replaced:
    """The result of a replacement: the account in use, and when the previous token ends (None: it is revoked)."""

    account: str
    previous_expires: str | None = None


@asynccontextmanager
async def connected(connection: Connection) -> AsyncIterator[HTTPClient]:
    """Connect to a member with the credentials of a kubeconfig, also those of a credential plugin."""
    client = HTTPClient(connection, HTTPOptions(request_timeout_s=_REQUEST_TIMEOUT_S))
    try:
        yield client
    finally:
        await client.close()


async def create_account(host: Client, member: Client, cluster: Object, clock: Clock, timeout_s: float) -> str:
    """Claim the member for the FederatedCluster, create our account in it, and return its token.

    ConfigurationError if the member belongs to another federation, refuses, or is not ready within `timeout_s`.
    """
    types = await federated_types(host)
    host_cluster = await memberjoin.find_host(host)

    async def create() -> str:
        namespace = await memberjoin.claim(member, cluster["metadata"]["uid"], host_cluster, host)
        await memberaccount.ensure_account(member, namespace, types)
        return await memberaccount.obtain_token(member, names.MEMBER_SERVICE_ACCOUNT)

    with _translated(cluster["spec"]["apiEndpoint"]):
        await memberjoin.identify(member, host_cluster)
        return await _retry(create, (memberaccount.NotYetError,), clock, timeout_s)


async def remove_account(member: Client, cluster: Object) -> str:
    """Remove from the member what a failed join created; return what remains and why, "" if nothing does."""
    try:
        await memberjoin.unclaim(member, cluster["metadata"]["uid"])
    except (ApiError, ClusterError) as error:
        return f"the namespace {names.SYSTEM_NAMESPACE} of {cluster['spec']['apiEndpoint']} may remain: {error}"
    return ""


async def wait_usable(
    connection: Connection, name: str, identity: Identity | None, clock: Clock, timeout_s: float
) -> None:
    """Wait until the member accepts a new token, and check that the member is the right one; ConfigurationError.

    A member's authorizer knows a new account only after a moment.
    """
    with _translated(connection.server):
        async with connected(connection) as client:
            read = partial(client.get, NAMESPACES, names.SYSTEM_NAMESPACE)
            await _retry(read, (Unauthorized, Forbidden), clock, timeout_s)
            if identity is not None:
                await check_identity(name, client.transport, identity)


async def replace_credentials(
    host: Client,
    name: str,
    given: Connection | None,
    clock: Clock,
    timeout_s: float,
    report: Report = unreported,
) -> Replaced:
    """Replace the credentials of a joined member, and its CA by that of the given kubeconfig.

    Without `given` the stored credentials are used; if they may not create an account, only the token is replaced.
    ConfigurationError if the cluster has not joined, another cluster answers, or the member refuses.
    """
    cluster, secret = await _joined_cluster(host, name)
    types, identity = await federated_types(host), identity_of(cluster)
    admin = (await fetch_credentials(given)).connection if given else connection_from_secret(cluster, secret)
    target = _to_target(cluster, secret, given)
    report(f"creating the next service account in {admin.server}")
    async with connected(admin) as member:
        with _translated(admin.server):
            if identity is not None:
                await check_identity(name, member.transport, identity)
            try:
                present, account = await _create_next_account(member, types, clock)
            except Forbidden:
                if given is not None:
                    raise
                return await _replace_token(host, member, cluster, admin, clock, timeout_s)
        try:
            with _translated(admin.server):
                obtain = partial(memberaccount.obtain_token, member, account)
                token = await _retry(obtain, (memberaccount.NotYetError,), clock, timeout_s)
            connection = replace(target, token=token)
            report(f"waiting until {admin.server} accepts the account's token")
            await wait_usable(connection, name, identity, clock, timeout_s)
        except BaseException:
            await memberaccount.keep_accounts(member, present)
            raise
        await _store(host, cluster, connection)
        report("waiting until the control plane uses the new token")
        is_member = await _wait_in_use(host, name, account, clock, timeout_s)
        with _translated(admin.server):
            if is_member:
                await memberaccount.keep_accounts(member, (account,))
    return Replaced(account)


async def _create_next_account(member: Client, types: list[FederatedType], clock: Clock) -> tuple[list[str], str]:
    """Create another account beside those in use, with the same rights; return the names of those, and its own."""
    namespace = await member.get(NAMESPACES, names.SYSTEM_NAMESPACE)
    present = await memberaccount.find_accounts(member)
    account = f"{names.MEMBER_SERVICE_ACCOUNT}-{clock.now():%Y%m%d%H%M%S}"
    await memberaccount.ensure_account(member, namespace, types, account=account, beside=present)
    return present, account


def _to_target(cluster: Object, secret: Object, given: Connection | None) -> Connection:
    """Return the connection of the control plane to the member, without credentials."""
    insecure = bool(cluster["spec"].get("insecure"))
    ca = b"" if insecure else (given.ca_data if given is not None else b"") or ca_of(secret)
    target = Connection(server_of(cluster), ca_data=ca, insecure=insecure)
    if target.server.startswith("https://") and not ca and not insecure:
        raise ConfigurationError(
            f"the kubeconfig for {target.server} has no certificate-authority; add the CA of its certificate"
        )
    return target


async def _replace_token(
    host: Client, member: Client, cluster: Object, stored: Connection, clock: Clock, timeout_s: float
) -> Replaced:
    """Store a new token of the present account; the previous one stays valid until it expires."""
    present = parse_account_token(stored.token)
    if present is None:
        raise ConfigurationError(
            "the stored credentials may not create an account; give an administrator's kubeconfig with --kubeconfig"
        )
    connection = replace(stored, token=await memberaccount.request_token(member, present.account))
    await wait_usable(connection, cluster["metadata"]["name"], identity_of(cluster), clock, timeout_s)
    await _store(host, cluster, connection)
    return Replaced(present.account, to_rfc3339(present.expires) if present.expires is not None else "never")


async def _joined_cluster(host: Client, name: str) -> tuple[Object, Object]:
    try:
        cluster = await host.get(FEDERATED_CLUSTERS, name)
    except NotFound:
        raise await not_joined(host, name) from None
    if not (cluster.get("status") or {}).get("joinPerformed"):
        raise ConfigurationError(f'cluster "{name}" has not joined; run `fedctl unjoin {name}` and join it again')
    secret_name = cluster["spec"]["secretRef"]["name"]
    try:
        return cluster, await host.get(SECRETS, secret_name, names.SYSTEM_NAMESPACE)
    except NotFound:
        empty = {"apiVersion": "v1", "kind": "Secret", "data": {}}
        return cluster, {**empty, "metadata": {"name": secret_name, "namespace": names.SYSTEM_NAMESPACE}}


async def _store(host: Client, cluster: Object, connection: Connection) -> None:
    """Store token and CA, then let the cluster use the token, then remove given credentials: each state is usable."""
    secret = cluster["spec"]["secretRef"]["name"]
    ca = {names.SECRET_CA: connection.ca_data} if connection.ca_data else {}
    await write_secret(host, secret, {names.SECRET_SERVICE_ACCOUNT_TOKEN: connection.token.encode(), **ca})
    if not cluster["spec"].get("useServiceAccount"):
        patch = {"spec": {"useServiceAccount": True}}
        name = cluster["metadata"]["name"]
        await host.patch(FEDERATED_CLUSTERS, name, patch, patch_type=PatchType.MERGE, field_manager="fedctl")
    await write_secret(host, secret, dict.fromkeys(names.SECRET_BOOTSTRAP_KEYS))


async def write_secret(host: Client, name: str, values: Mapping[str, bytes | None]) -> None:
    """Set values of a member's Secret and remove those that are None; create the Secret if it does not exist."""
    data = {key: None if value is None else base64.b64encode(value).decode() for key, value in values.items()}
    try:
        await host.patch(
            SECRETS,
            name,
            {"data": data},
            patch_type=PatchType.MERGE,
            namespace=names.SYSTEM_NAMESPACE,
            field_manager="fedctl",
        )
    except NotFound:
        metadata = {"name": name, "namespace": names.SYSTEM_NAMESPACE}
        present = {key: value for key, value in data.items() if value is not None}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": present}
        await host.create(SECRETS, secret, field_manager="fedctl")


async def _wait_in_use(host: Client, name: str, account: str, clock: Clock, timeout_s: float) -> bool:
    """Wait until the control plane uses the account and return True, or False when the cluster has left meanwhile.

    FederationError after `timeout_s`: the previous account stays then.
    """
    patience = Patience(clock, timeout_s)
    while True:
        try:
            status = (await host.get(FEDERATED_CLUSTERS, name)).get("status") or {}
        except NotFound:
            return False
        if (status.get("credential") or {}).get("serviceAccount") == account:
            return True
        if patience.is_over():
            raise FederationError(
                f'cluster "{name}": the control plane does not use the new account after {timeout_s:g} s; the previous'
                " account is kept. Run the command again when the control plane works"
            )
        await clock.sleep(_POLL_S)


async def federated_types(host: Client) -> list[FederatedType]:
    """Return the federated types of the host."""
    return parse_configs((await host.list(FEDERATED_TYPE_CONFIGS)).items)


async def _retry(
    call: Callable[[], Awaitable[T]], errors: tuple[type[Exception], ...], clock: Clock, timeout_s: float
) -> T:
    """Return the result of the first call that raises none of these errors; the last error after `timeout_s`."""
    patience = Patience(clock, timeout_s)
    while True:
        try:
            return await call()
        except errors:
            if patience.is_over():
                raise
        await clock.sleep(_POLL_S)


@contextmanager
def _translated(server: str) -> Iterator[None]:
    """Raise a member's errors as one-line ConfigurationErrors that name the server."""
    try:
        yield
    except ClusterIdentityMismatch as error:
        raise ConfigurationError(f"{server}: {error}") from None
    except memberjoin.UnjoinableError as error:
        raise ConfigurationError(f"{server} cannot join: {error}") from None
    except Unauthorized:
        raise ConfigurationError(f"{server} rejects the credentials; give an administrator's kubeconfig") from None
    except Forbidden as error:
        first = error.message.splitlines()[0]
        raise ConfigurationError(f"{server} refuses a request: {first}; give an administrator's kubeconfig") from None
    except (ApiError, ClusterError, memberaccount.NotYetError) as error:
        raise ConfigurationError(f"{server}: {error}") from None
