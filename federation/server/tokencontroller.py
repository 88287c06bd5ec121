"""Fills Secrets of type `kubernetes.io/service-account-token`: the token, the CA and the namespace of their account.

The old way to get a ServiceAccount's credentials, which clients (and joining with a service account) still use.
Level-triggered: lists, then follows changes; a Secret whose account is missing is looked at again every few seconds.
"""

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import orjson

from federation.api import names
from federation.base.clock import Clock
from federation.base.errors import ApiError, Expired, NotFound, StoreError
from federation.base.tasks import Supervisor
from federation.registry.options import ListOptions, WriteOptions
from federation.registry.registry import Registry
from federation.server.tokens import ServiceAccountTokens

_NAME = "kubernetes.io/service-account.name"
_UID = "kubernetes.io/service-account.uid"
_MERGE = "application/merge-patch+json"
_RETRY_S = 2.0
_WAITING_MAX = 1000


class TokenController:
    """Issues tokens for Secrets; `ca` returns the PEM that the tokens' users need to trust this server."""

    def __init__(
        self, registry: Registry, tokens: ServiceAccountTokens, *, ca: Callable[[], bytes], clock: Clock
    ) -> None:
        self._registry = registry
        self._tokens = tokens
        self._ca = ca
        self._clock = clock
        self._waiting: dict[tuple[str, str], None] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        supervisor = Supervisor(self._clock)
        supervisor.add("token-secrets", self._follow)
        supervisor.add("token-secrets-retry", self._retry)
        await supervisor.run()

    async def _follow(self) -> None:
        info = self._registry.kinds.lookup("", "v1", "secrets")
        while True:
            selector = f"type={names.SERVICE_ACCOUNT_TOKEN_TYPE}"
            found = await self._registry.list(info, "", ListOptions(field_selector=selector))
            for value in found.items:
                await self._fill(orjson.loads(value))
            try:
                options = ListOptions(field_selector=selector, resource_version=str(found.resource_version))
                async for batch in self._registry.watch(info, "", options):
                    for type_, value in batch:
                        if type_ in ("ADDED", "MODIFIED"):
                            await self._fill(orjson.loads(value))
            except (Expired, StoreError):
                await self._clock.sleep(0.1)

    async def _retry(self) -> None:
        info = self._registry.kinds.lookup("", "v1", "secrets")
        while True:
            await self._clock.sleep(_RETRY_S)
            waiting, self._waiting = self._waiting, {}
            for namespace, name in waiting:
                try:
                    value = await self._registry.get(info, namespace, name)
                except NotFound:
                    continue
                await self._fill(orjson.loads(value))
                await asyncio.sleep(0)

    async def _fill(self, secret: dict[str, Any]) -> None:
        """Write what is missing in one Secret; nothing to do when it has a token already."""
        metadata, data = secret["metadata"], secret.get("data") or {}
        account_name = (metadata.get("annotations") or {}).get(_NAME, "")
        if data.get("token") or metadata.get("deletionTimestamp") or not account_name:
            return
        namespace, name = metadata["namespace"], metadata["name"]
        try:
            accounts = self._registry.kinds.lookup("", "v1", "serviceaccounts")
            account = orjson.loads(await self._registry.get(accounts, namespace, account_name))
        except NotFound:
            if len(self._waiting) < _WAITING_MAX:
                self._waiting[namespace, name] = None
            return
        uid = account["metadata"]["uid"]
        token = self._tokens.issue_for_secret(namespace=namespace, name=account_name, uid=uid, secret_name=name)
        filled = {"token": token.encode(), "ca.crt": self._ca(), "namespace": namespace.encode()}
        patch = {
            "metadata": {"annotations": {_UID: uid}, "resourceVersion": metadata["resourceVersion"]},
            "data": {key: base64.b64encode(value).decode() for key, value in filled.items()},
        }
        info = self._registry.kinds.lookup("", "v1", "secrets")
        try:
            options = WriteOptions(field_manager="federation-tokens")
            await self._registry.patch(info, namespace, name, _MERGE, orjson.dumps(patch), options)
        except ApiError:
            # Changed or deleted since: the next event, or the next round, has the newer state.
            self._waiting[namespace, name] = None
