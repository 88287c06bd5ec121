"""The agent's requests to the host before and beside its tunnel: register, deliver the account's token, renew.

The agent creates the control plane's account in the member itself, with the rights that push mode documents, and sends
the host the account's token. The host never sees the credentials that the agent has.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.agent.agentfiles import Host, Identity
from federation.api import agents, names
from federation.api.agents import Bundle
from federation.api.federatedtype import parse_configs
from federation.apimachinery.clock import Clock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    ConfigurationError,
    FederationError,
    NotFound,
    from_status,
)
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import NAMESPACES, Object
from federation.client.client import Client
from federation.client.http import HTTPClient
from federation.controllers.cluster import memberaccount, memberjoin

_TIMEOUT_S = 30.0
_POLL_S = 0.5


async def register(identity: Identity, bundle: Bundle, member: HTTPClient) -> None:
    """Exchange the token for a certificate; ConfigurationError if the member or the host refuses."""
    claim = await _find_claim(member)
    given = member.connection
    is_insecure = given.insecure or not given.server.startswith("https://")
    if not is_insecure and not given.ca_data:
        raise ConfigurationError(
            f"the kubeconfig for {given.server} has no certificate-authority; add the CA of its certificate"
        )
    host = Host(bundle.server, bundle.ca, bundle.cluster)
    body = {
        "tokenID": bundle.token_id,
        "secret": bundle.secret,
        "certificateRequest": identity.new_request(),
        "server": given.server,
        "insecure": is_insecure,
        "claim": claim,
    }
    identity.store(host, await _obtain_certificate(host, body))


async def _obtain_certificate(host: Host, body: Object) -> str:
    """Send the registration to the first of the host's processes that answers."""
    problem: FederationError | None = None
    for server in host.servers:
        try:
            return str((await _call(host.connection(server), "POST", agents.REGISTER_PATH, body))["certificate"])
        except ApiError as error:
            raise ConfigurationError(f"{server} refuses the registration: {error}") from None
        except ClusterError as error:
            problem = error
    raise ConfigurationError(f"{host.server} cannot be reached: {problem}")


async def deliver_credentials(identity: Identity, server: str, member: HTTPClient, clock: Clock) -> list[Object]:
    """Create the control plane's account in the member if the host has no usable token of it.

    Returns the host's FederatedTypeConfigs. ConfigurationError when the member belongs to another federation.
    """
    host = identity.host()
    connection, query = identity.connection(server), f"?cluster={host.cluster}"
    wanted = await _call(connection, "GET", agents.MEMBER_PATH + query)
    if not wanted["needsCredentials"]:
        return list(wanted.get("typeConfigs") or ())  # an older host sends them only with the next answer
    ours = memberjoin.Host(str(wanted["hostUID"]), tuple(wanted["hostUIDs"]))
    try:
        await memberjoin.identify(member, ours)
        token = await _create_account(member, str(wanted["uid"]), ours, wanted["typeConfigs"], clock)
    except memberjoin.UnjoinableError as error:
        raise ConfigurationError(f"{member.connection.server} cannot join: {error}") from None
    given = member.connection
    ca = "" if given.insecure else given.ca_data.decode("ascii", errors="replace")
    await _call(connection, "POST", agents.CREDENTIALS_PATH + query, {"token": token, "ca": ca})
    return list(wanted["typeConfigs"])


async def renew(identity: Identity, server: str) -> None:
    """Replace the certificate by a new one for the same key."""
    host = identity.host()
    body = {"certificateRequest": identity.new_request()}
    answer = await _call(identity.connection(server), "POST", f"{agents.RENEW_PATH}?cluster={host.cluster}", body)
    identity.store(host, str(answer["certificate"]))


async def _create_account(
    member: Client, uid: str, host: memberjoin.Host, type_configs: list[Object], clock: Clock
) -> str:
    """Claim the member, create the account, and return its token; retried while the member is not ready for a step."""
    deadline_s = clock.monotonic() + _TIMEOUT_S
    while True:
        try:
            namespace = await memberjoin.claim(member, uid, host, None)
            await memberaccount.ensure_account(member, namespace, parse_configs(type_configs))
            return await memberaccount.obtain_token(member, names.MEMBER_SERVICE_ACCOUNT)
        except memberaccount.NotYetError:
            if clock.monotonic() >= deadline_s:
                raise
        await clock.sleep(_POLL_S)


async def _find_claim(member: HTTPClient) -> str:
    """Return the uid of the FederatedCluster that the member belongs to, "" if none; ConfigurationError."""
    try:
        namespace = await member.get(NAMESPACES, names.SYSTEM_NAMESPACE)
    except NotFound:
        return ""
    except (ApiError, ClusterError) as error:
        raise ConfigurationError(f"the member {member.connection.server} cannot be used: {error}") from None
    return str((namespace["metadata"].get("annotations") or {}).get(names.FEDERATED_CLUSTER_UID) or "")


async def _call(connection: Connection, method: str, path: str, body: Mapping[str, Any] | None = None) -> Object:
    """Send a request to the host and return the object in its answer; ApiError or ClusterError."""
    host = HTTPClient(connection)
    try:
        code, text = await host.raw(
            method, path, body=orjson.dumps(body) if body is not None else None, timeout_s=_TIMEOUT_S
        )
    finally:
        await host.close()
    found = parse_object(text)
    if code >= 300:
        raise from_status(found or {}, code)
    if found is None:
        raise FederationError(f"{connection.server} answered {method} {path.partition('?')[0]} without a JSON object")
    return found
