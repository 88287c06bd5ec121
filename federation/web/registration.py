"""Registration of agents: a token becomes a FederatedCluster in pull mode and a client certificate for its agent.

A token is a Secret with the hash of its secret, the cluster's name and an expiry (`fedctl token create`). It is used
once: the first request marks it with the resourceVersion that it read, so that of two concurrent ones one fails. The
marked Secret stays until it expires, so that a second use is recognised and reported in an Event.

A certificate names the FederatedCluster by its uid and the registration by its token's id. Both are compared at each
request, so that a cluster that left, or that registered again, refuses earlier certificates.
"""

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import orjson

from federation.api import agents, names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS
from federation.apimachinery.clock import Clock, from_rfc3339, to_rfc3339
from federation.apimachinery.errors import BadRequest, Conflict, Forbidden, NotFound, Unauthorized
from federation.apimachinery.resources import NAMESPACES, SECRETS, Object
from federation.apiserver.auth.identity import User
from federation.client.accounttoken import parse_account_token
from federation.client.client import Client, PatchType
from federation.client.clustersecret import is_pulled
from federation.client.identity import cluster_uid
from federation.runtime.events import NORMAL, WARNING, Recorder
from federation.web.names import EVENT_AGENT_REFUSED, EVENT_AGENT_REGISTERED

_TEXT_LENGTH_MAX = 64 * 1024
_UNUSABLE = "the registration token is unknown, expired or used; create another one with: fedctl token create"

Certify = Callable[[bytes, str, Sequence[str], timedelta], Awaitable[bytes]]
"""Returns a client certificate for a signing request, a user and its groups."""


@dataclass(frozen=True, slots=True)
class RegistrationOptions:
    """Limits of agents' identities."""

    certificate_lifetime_s: float = 30 * 86400.0
    """Agents renew their certificate after two thirds of it."""


class Registration:
    """Exchanges tokens for certificates, and answers what registered agents ask for."""

    def __init__(
        self,
        client: Client,
        certify: Certify,
        recorder: Recorder,
        clock: Clock,
        options: RegistrationOptions | None = None,
    ) -> None:
        self._client = client
        self._certify = certify
        self._recorder = recorder
        self._clock = clock
        self._validity = timedelta(seconds=(options or RegistrationOptions()).certificate_lifetime_s)

    async def register(self, body: Mapping[str, Any]) -> Object:
        """Use the token of a request, and return the certificate for its key; Unauthorized, Conflict or BadRequest."""
        token_id, secret = _text(body, "tokenID"), _text(body, "secret")
        request, server = _text(body, "certificateRequest"), _text(body, "server")
        if urlsplit(server).scheme not in ("https", "http") or not urlsplit(server).hostname:
            raise BadRequest(f"server: {server!r} is no address; write https://HOST:PORT")
        token = await self._check_token(token_id, secret)
        name = _value(token, "cluster")
        cluster = await self._find(name)
        if cluster is not None and not is_pulled(cluster):
            raise Conflict(f'cluster "{name}" is joined in push mode; run: fedctl unjoin {name}')
        if cluster is not None and cluster["metadata"].get("deletionTimestamp"):
            raise Conflict(f'cluster "{name}" is leaving; try again when it has left')
        await self._check_claim(body, cluster)
        # A request that cannot be signed must not use up the token.
        await self._certify(request.encode(), "checked", (), self._validity)
        await self._use(token)
        cluster = await self._ensure_cluster(name, cluster, token, server, is_insecure=bool(body.get("insecure")))
        user, groups = agents.agent_user(cluster["metadata"]["uid"]), (agents.agent_group(token_id),)
        certificate = await self._certify(request.encode(), user, groups, self._validity)
        self._recorder.event(cluster, NORMAL, EVENT_AGENT_REGISTERED, f"an agent registered with token {token_id}")
        return {"certificate": certificate.decode()}

    async def authenticate(self, user: User, cluster_name: str, *, has_certificate: bool) -> Object:
        """Return the FederatedCluster whose agent the user is; Forbidden."""
        cluster = await self._find(cluster_name) if user.name.startswith(names.AGENT_USER_PREFIX) else None
        if cluster is not None and has_certificate and agents.is_agent(user.name, user.groups, cluster):
            return cluster
        if cluster is not None:
            text = "a certificate of an earlier registration, or of another cluster's agent, was refused"
            self._recorder.event(cluster, WARNING, EVENT_AGENT_REFUSED, text)
        raise Forbidden(f'not the agent of cluster "{cluster_name}"; register again with: fedctl agent --register')

    async def renew(self, user: User, body: Mapping[str, Any]) -> Object:
        """Return a new certificate for an agent, with the identity that it has."""
        groups = [group for group in user.groups if group.startswith(names.AGENT_REGISTRATION_PREFIX)]
        request = _text(body, "certificateRequest").encode()
        return {"certificate": (await self._certify(request, user.name, groups, self._validity)).decode()}

    async def describe(self, cluster: Object) -> Object:
        """Return whether an agent must create the control plane's account in its member, and what it needs for that.

        The FederatedTypeConfigs also tell it what to record (docs/decisions/0060-agents-repair-drift.md).
        """
        types = (await self._client.list(FEDERATED_TYPE_CONFIGS)).items
        if not await self._needs_credentials(cluster):
            return {"needsCredentials": False, "typeConfigs": types}
        hosts = ""
        try:
            namespace = await self._client.get(NAMESPACES, names.SYSTEM_NAMESPACE)
            hosts = str((namespace["metadata"].get("annotations") or {}).get(names.HOST_CLUSTER_UIDS, ""))
        except NotFound:
            pass
        return {
            "uid": cluster["metadata"]["uid"],
            "hostUID": await cluster_uid(self._client.transport),
            "hostUIDs": [uid for uid in hosts.split(",") if uid],
            "typeConfigs": types,
            "needsCredentials": True,
        }

    async def store_credentials(self, cluster: Object, body: Mapping[str, Any]) -> Object:
        """Write the account's token and the member's CA to the cluster's Secret."""
        token = _text(body, "token")
        ca = str(body.get("ca") or "")
        if len(ca) > _TEXT_LENGTH_MAX:
            raise BadRequest(f"ca: longer than {_TEXT_LENGTH_MAX} characters")
        values = {names.SECRET_SERVICE_ACCOUNT_TOKEN: token, names.SECRET_CA: ca}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items() if value}
        name = cluster["spec"]["secretRef"]["name"]
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": names.SYSTEM_NAMESPACE},
            "type": "Opaque",
            "data": data,
        }
        await self._client.patch(
            SECRETS,
            name,
            secret,
            patch_type=PatchType.APPLY,
            namespace=names.SYSTEM_NAMESPACE,
            field_manager=names.FIELD_MANAGER,
            force=True,
        )
        return {}

    async def _check_token(self, token_id: str, secret: str) -> Object:
        """Return the Secret of a token that may be used; Unauthorized, and an Event when the token is known."""
        if not token_id.isalnum() or len(token_id) > 32:
            raise Unauthorized(_UNUSABLE)
        try:
            token = await self._client.get(SECRETS, names.AGENT_TOKEN_PREFIX + token_id, names.SYSTEM_NAMESPACE)
        except NotFound:
            raise Unauthorized(_UNUSABLE) from None
        problem = ""
        if token.get("type") != names.AGENT_TOKEN_TYPE or not agents.is_secret(secret, _value(token, "hash")):
            problem = "its secret is wrong"
        elif _value(token, "used"):
            problem = f"it was used at {_value(token, 'used')}; if that was not you, run: fedctl unjoin CLUSTER"
        elif from_rfc3339(_value(token, "expires")) <= self._clock.now():
            problem = f"it expired at {_value(token, 'expires')}"
        if problem:
            await self._report(token, f"registration token {token_id} was refused: {problem}")
            raise Unauthorized(_UNUSABLE)
        return token

    async def _report(self, token: Object, message: str) -> None:
        """Emit an Event on the cluster of a token, or on the token if the cluster does not exist."""
        cluster = await self._find(_value(token, "cluster"))
        self._recorder.event(cluster or token, WARNING, EVENT_AGENT_REFUSED, message)

    async def _check_claim(self, body: Mapping[str, Any], cluster: Object | None) -> None:
        """Raise Conflict if the member belongs to another cluster of this federation."""
        claim = str(body.get("claim") or "")
        uid = cluster["metadata"]["uid"] if cluster is not None else ""
        if not claim or claim == uid:
            return
        for other in (await self._client.list(FEDERATED_CLUSTERS)).items:
            if other["metadata"]["uid"] == claim:
                name = other["metadata"]["name"]
                raise Conflict(f'the member is already joined as "{name}"; run `fedctl unjoin {name}` first')

    async def _use(self, token: Object) -> None:
        """Mark the token as used; Unauthorized if a concurrent request was faster."""
        metadata = token["metadata"]
        used = base64.b64encode(to_rfc3339(self._clock.now()).encode()).decode()
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "data": {"used": used}}
        try:
            await self._client.patch(
                SECRETS,
                metadata["name"],
                patch,
                patch_type=PatchType.MERGE,
                namespace=names.SYSTEM_NAMESPACE,
                field_manager=names.FIELD_MANAGER,
            )
        except (Conflict, NotFound):
            await self._report(token, f"registration token {metadata['name']} was refused: it was used twice at once")
            raise Unauthorized(_UNUSABLE) from None

    async def _ensure_cluster(
        self, name: str, cluster: Object | None, token: Object, server: str, *, is_insecure: bool
    ) -> Object:
        """Create the FederatedCluster, or record this registration at the existing one."""
        token_id = token["metadata"]["name"].removeprefix(names.AGENT_TOKEN_PREFIX)
        annotations = {names.AGENT_REGISTRATION: token_id}
        if cluster is not None:
            patch = {"metadata": {"annotations": annotations}, "spec": {"apiEndpoint": server}}
            return await self._client.patch(
                FEDERATED_CLUSTERS, name, patch, patch_type=PatchType.MERGE, field_manager=names.FIELD_MANAGER
            )
        spec: dict[str, Any] = {
            "apiEndpoint": server,
            "secretRef": {"name": f"{name}-credentials"},
            "syncMode": names.SYNC_MODE_PULL,
            "useServiceAccount": True,
        }
        if is_insecure or server.startswith("http://"):
            spec["insecure"] = True
        if taints := orjson.loads(_value(token, "taints") or "[]"):
            spec["taints"] = taints
        labels = orjson.loads(_value(token, "labels") or "{}")
        wanted = {
            "apiVersion": FEDERATED_CLUSTERS.api_version,
            "kind": FEDERATED_CLUSTERS.kind,
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "spec": spec,
        }
        return await self._client.create(FEDERATED_CLUSTERS, wanted, field_manager=names.FIELD_MANAGER)

    async def _needs_credentials(self, cluster: Object) -> bool:
        """Return whether the cluster's Secret has no token, or one that has expired."""
        try:
            secret = await self._client.get(SECRETS, cluster["spec"]["secretRef"]["name"], names.SYSTEM_NAMESPACE)
        except NotFound:
            return True
        text = _value(secret, names.SECRET_SERVICE_ACCOUNT_TOKEN)
        token = parse_account_token(text)
        return not text or (token is not None and token.expires is not None and token.expires <= self._clock.now())

    async def _find(self, name: str) -> Object | None:
        try:
            return await self._client.get(FEDERATED_CLUSTERS, name)
        except NotFound:
            return None


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value or len(value) > _TEXT_LENGTH_MAX:
        raise BadRequest(f"{key}: required, a text of up to {_TEXT_LENGTH_MAX} characters")
    return value


def _value(secret: Object, key: str) -> str:
    try:
        return base64.b64decode((secret.get("data") or {}).get(key) or "", validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
