"""What a database must not keep for an earlier version: configurations of kinds that it would misread.

A version ships FederatedTypeConfigs for kinds that act on an API server, and leaves out what each server makes for
itself. An earlier version has no such rule: with the configuration in its database it federates its own APIServices.
So `fedctl db downgrade` removes what was shipped later than the schema to go back to, with its entry in the record of
what was shipped; an upgrade ships it again. Federated objects and the copies in members stay.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.resources import CONFIGMAPS
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.store import maintenance
from federation.apiserver.store.interface import Store
from federation.apiserver.store.migrate import read_versions
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.schema import SCHEMA_VERSION
from federation.apiserver.store.sql import SQLStore
from federation.settings import Settings

_CONFIGS = f"/{FEDERATED_TYPE_CONFIGS.group}/{FEDERATED_TYPE_CONFIGS.plural}/"
_RECORD = f"/core/{CONFIGMAPS.plural}/{names.SYSTEM_NAMESPACE}/{names.SHIPPED_TYPES}"
_SHIPPED_WITH: Mapping[int, frozenset[str]] = {
    6: frozenset(
        (
            "apiservices.apiregistration.k8s.io",
            "mutatingwebhookconfigurations.admissionregistration.k8s.io",
            "validatingadmissionpolicies.admissionregistration.k8s.io",
            "validatingadmissionpolicybindings.admissionregistration.k8s.io",
            "validatingwebhookconfigurations.admissionregistration.k8s.io",
        )
    )
}
"""By the schema of the first version that knows what to do with them: names of shipped configurations."""


def withdraw(settings: Settings, target: int) -> list[str]:
    """Remove what a version with schema `target` would misread from the database; return the names."""
    unknown = frozenset(name for schema, known in _SHIPPED_WITH.items() if schema > target for name in known)
    with maintenance.reading(settings.database_url) as connection:
        present, _ = read_versions(connection, maintenance.name_of(settings.database_url))
    if not unknown or not target < present <= SCHEMA_VERSION:
        return []
    return asyncio.run(
        _withdraw(SQLStore(settings.database_url, StoreOptions(encryption=settings.encryption)), unknown)
    )


async def _withdraw(store: SQLStore, unknown: frozenset[str]) -> list[str]:
    await store.ready()
    try:
        return await _remove(store, unknown)
    finally:
        await store.close()


async def _remove(store: Store, unknown: frozenset[str]) -> list[str]:
    entry = await store.get(_RECORD)
    if entry is None:
        return []
    record = encoding.decode(entry.value)
    shipped: Mapping[str, Any] = record.get("data") or {}
    removed = sorted(unknown & shipped.keys())  # others were written by users
    for name in removed:
        config = await store.get(_CONFIGS + name)
        if config is not None:
            await store.delete(_CONFIGS + name, encoding.to_body(config.value), config.revision)
    if removed:
        record["data"] = {name: text for name, text in shipped.items() if name not in unknown}
        head = encoding.encode_head(record["apiVersion"], record["kind"])
        await store.update(_RECORD, encoding.encode(head, record), entry.revision)
    return removed
