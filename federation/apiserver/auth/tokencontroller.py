"""The token controller: fills Secrets of type `kubernetes.io/service-account-token` with token, CA and namespace.

It lists and watches these Secrets, as kube-controller-manager does. A Secret whose ServiceAccount does not exist yet is
retried every few seconds.
"""

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.tasks import Supervisor
from federation.apimachinery.wellknown import SERVICE_ACCOUNT_TOKEN_TYPE
from federation.apiserver.auth.serviceaccounttokens import ServiceAccountTokens
from federation.apiserver.registry.objects import Changes, list_and_watch, patch_version
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import WriteOptions

_NAME = "kubernetes.io/service-account.name"
_UID = "kubernetes.io/service-account.uid"
_OPTIONS = WriteOptions(field_manager="federation-tokens")
_RETRY_S = 2.0
_RETRIES_MAX = 1000


class TokenController:
    """Issues tokens for Secrets; `ca` returns the PEM of the server's CA."""

    def __init__(
        self, registry: Registry, tokens: ServiceAccountTokens, *, ca: Callable[[], bytes], clock: Clock
    ) -> None:
        self._registry = registry
        self._tokens = tokens
        self._ca = ca
        self._clock = clock
        self._retries: dict[tuple[str, str], None] = {}
        self._has_retries = asyncio.Event()

    async def run(self) -> None:
        """Fill Secrets until cancelled."""
        supervisor = Supervisor(self._clock)
        supervisor.add("token-secrets", self._fill_all)
        supervisor.add("token-secrets-retry", self._retry)
        await supervisor.run()

    async def _fill_all(self) -> None:
        info = self._registry.kinds.lookup("", "v1", "secrets")
        selector = f"type={SERVICE_ACCOUNT_TOKEN_TYPE}"
        changes: Changes[dict[str, Any]]
        async for changes in list_and_watch(
            self._registry, info, self._clock, parse=orjson.loads, field_selector=selector
        ):
            for secret, is_deleted in changes.objects:
                if not is_deleted:
                    await self._fill(secret)

    async def _retry(self) -> None:
        info = self._registry.kinds.lookup("", "v1", "secrets")
        while True:
            await self._has_retries.wait()
            await self._clock.sleep(_RETRY_S)
            self._has_retries.clear()
            retries, self._retries = self._retries, {}
            for namespace, name in retries:
                try:
                    value = await self._registry.get(info, namespace, name)
                except NotFound:
                    continue
                await self._fill(orjson.loads(value))
                await asyncio.sleep(0)

    async def _fill(self, secret: dict[str, Any]) -> None:
        """Fill one Secret, unless it has a token already."""
        metadata, data = secret["metadata"], secret.get("data") or {}
        account_name = (metadata.get("annotations") or {}).get(_NAME, "")
        if data.get("token") or metadata.get("deletionTimestamp") or not account_name:
            return
        namespace, name = metadata["namespace"], metadata["name"]
        try:
            accounts = self._registry.kinds.lookup("", "v1", "serviceaccounts")
            account = orjson.loads(await self._registry.get(accounts, namespace, account_name))
        except NotFound:
            if len(self._retries) < _RETRIES_MAX:
                self._retry_later(namespace, name)
            return
        uid = account["metadata"]["uid"]
        token = self._tokens.issue_for_secret(namespace=namespace, name=account_name, uid=uid, secret_name=name)
        filled = {"token": token.encode(), "ca.crt": self._ca(), "namespace": namespace.encode()}
        changes = {
            "metadata": {"annotations": {_UID: uid}},
            "data": {key: base64.b64encode(value).decode() for key, value in filled.items()},
        }
        info = self._registry.kinds.lookup("", "v1", "secrets")
        try:
            await patch_version(self._registry, info, secret, changes, _OPTIONS)
        except ApiError:
            # The Secret was changed or deleted in between: the next event or retry has the newer state.
            self._retry_later(namespace, name)

    def _retry_later(self, namespace: str, name: str) -> None:
        self._retries[namespace, name] = None
        self._has_retries.set()
