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
from federation.apimachinery.errors import ApiError, Expired, NotFound
from federation.apimachinery.tasks import Supervisor
from federation.apimachinery.wellknown import SERVICE_ACCOUNT_TOKEN_TYPE
from federation.apiserver.auth.serviceaccounttokens import ServiceAccountTokens
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import ListOptions, WriteOptions

_NAME = "kubernetes.io/service-account.name"
_UID = "kubernetes.io/service-account.uid"
_MERGE = "application/merge-patch+json"
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

    async def run(self) -> None:
        """Fill Secrets until cancelled."""
        supervisor = Supervisor(self._clock)
        supervisor.add("token-secrets", self._list_and_watch)
        supervisor.add("token-secrets-retry", self._retry)
        await supervisor.run()

    async def _list_and_watch(self) -> None:
        info = self._registry.kinds.lookup("", "v1", "secrets")
        while True:
            selector = f"type={SERVICE_ACCOUNT_TOKEN_TYPE}"
            found = await self._registry.list(info, "", ListOptions(field_selector=selector))
            for value in found.items:
                await self._fill(orjson.loads(value))
            try:
                options = ListOptions(field_selector=selector, resource_version=str(found.resource_version))
                async for batch in self._registry.watch(info, "", options):
                    for type_, value in batch:
                        if type_ in ("ADDED", "MODIFIED"):
                            await self._fill(orjson.loads(value))
            except Expired:
                await self._clock.sleep(0.1)

    async def _retry(self) -> None:
        info = self._registry.kinds.lookup("", "v1", "secrets")
        while True:
            await self._clock.sleep(_RETRY_S)
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
                self._retries[namespace, name] = None
            return
        uid = account["metadata"]["uid"]
        token = self._tokens.issue_for_secret(namespace=namespace, name=account_name, uid=uid, secret_name=name)
        filled = {"token": token.encode(), "ca.crt": self._ca(), "namespace": namespace.encode()}
        # The resourceVersion makes the patch fail if the Secret was changed or filled in between.
        patch = {
            "metadata": {"annotations": {_UID: uid}, "resourceVersion": metadata["resourceVersion"]},
            "data": {key: base64.b64encode(value).decode() for key, value in filled.items()},
        }
        info = self._registry.kinds.lookup("", "v1", "secrets")
        try:
            options = WriteOptions(field_manager="federation-tokens")
            await self._registry.patch(info, namespace, name, _MERGE, orjson.dumps(patch), options)
        except ApiError:
            # The Secret was changed or deleted in between: the next event or retry has the newer state.
            self._retries[namespace, name] = None
