"""Bring the FederatedTypeConfigs that ship up to date, once per start, before the controllers run.

`features/types/rules.py` decides. The ConfigMap `shipped-type-configs` in the system namespace records what was
shipped, by name. It is written first, with what is known of the host, so that a start that was interrupted is repeated
and not taken for deletions by an administrator. A configuration that cannot be written keeps its record, and the next
start tries again: none of them is a reason not to start.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import orjson
import structlog

from federation.api import names
from federation.api.federatedtype import default_type_configs
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.effect import Effect
from federation.apimachinery.errors import AlreadyExists, ApiError, NotFound
from federation.apimachinery.resources import CONFIGMAPS, Object, Resource
from federation.client.client import Client
from federation.features.types.rules import first_shipped, plan_update, shipped_part
from federation.planning.federatedobject.hosteffect import ACTING, has_effect, is_servers_own

_log = structlog.get_logger(__name__)
_EFFECTS = "effects-on-host"
"""The entry of the record that says that objects which acted on the host were labelled."""


async def ensure_types(client: Client, *, keeps_effects: bool = False) -> None:
    """Create the shipped configurations that the host never had, and update those that no user changed.

    With `keeps_effects`, what acts on a host of an earlier version is labelled once, before its kind can be federated.
    """
    existing = {config["metadata"]["name"]: config for config in (await client.list(FEDERATED_TYPE_CONFIGS)).items}
    record = await _read_record(client)
    if record is None:
        record = {name: _to_text(part) for name, part in (first_shipped() if existing else {}).items()}
        await _create_record(client, record)
    updated = dict(record)
    withheld: frozenset[str] = frozenset()
    if keeps_effects and _EFFECTS not in record:
        if not existing or await _keep_effects(client):
            updated[_EFFECTS] = "true"
        else:
            withheld = frozenset(resource.group_resource for resource in ACTING)
    for config in default_type_configs():
        name, text = config["metadata"]["name"], _to_text(shipped_part(config))
        if record.get(name) == text or name in withheld:
            continue
        try:
            await _ship(client, config, existing.get(name), record.get(name))
        except (ApiError, ValueError, TypeError) as error:
            _log.warning("shipped FederatedTypeConfig left as it is", name=name, error=str(error))
        else:
            updated[name] = text
    if updated != record:
        await _patch_record(client, updated)


async def _ship(client: Client, config: Object, live: Object | None, recorded: str | None) -> None:
    """Create or update one configuration; ApiError if refused, ValueError or TypeError for a damaged record."""
    if recorded is None:
        if live is None:
            metadata = {**config["metadata"], "finalizers": [names.TYPE_CONFIG_FINALIZER]}
            with contextlib.suppress(AlreadyExists):  # of another process that starts
                await client.create(FEDERATED_TYPE_CONFIGS, {**config, "metadata": metadata})
        return  # one that exists was written by an administrator, or derived for a policy
    before = _from_text(recorded)
    if live is None or live["metadata"].get("deletionTimestamp"):
        return
    if patch := plan_update(before, live, shipped_part(config)):
        name = config["metadata"]["name"]
        await client.patch(FEDERATED_TYPE_CONFIGS, name, patch, field_manager=names.FIELD_MANAGER)


async def _keep_effects(client: Client) -> bool:
    """Label the objects that act on the host, so that no policy makes data of them; return whether all have the label.

    Earlier versions let all of them act. An administrator may rely on one that a policy selects by accident.
    """
    try:
        for resource in ACTING:
            for obj in (await client.list(resource)).items:
                if has_effect(resource, obj, Effect.REACHABLE) and not is_servers_own(
                    resource.group, resource.kind, obj
                ):
                    await _keep_effect(client, resource, obj["metadata"])
    except ApiError as error:
        _log.warning("kinds that act on the host are not federated yet", error=str(error))
        return False
    return True


async def _keep_effect(client: Client, resource: Resource, metadata: Mapping[str, Any]) -> None:
    if names.ACTS_ON_HOST in (metadata.get("labels") or {}):
        return
    _log.warning("labelled to keep its effect on the host", kind=resource.kind, name=metadata["name"])
    label = {"metadata": {"labels": {names.ACTS_ON_HOST: "true"}}}
    with contextlib.suppress(NotFound):
        await client.patch(resource, metadata["name"], label, field_manager=names.FIELD_MANAGER)


async def _read_record(client: Client) -> dict[str, str] | None:
    try:
        found = await client.get(CONFIGMAPS, names.SHIPPED_TYPES, names.SYSTEM_NAMESPACE)
    except NotFound:
        return None
    return found.get("data") or {}


async def _create_record(client: Client, record: Mapping[str, str]) -> None:
    metadata = {"name": names.SHIPPED_TYPES, "namespace": names.SYSTEM_NAMESPACE}
    try:
        await client.create(CONFIGMAPS, {"metadata": metadata, "data": dict(record)})
    except AlreadyExists:
        return  # of another process that starts
    except ApiError as error:
        _log.warning("shipped FederatedTypeConfigs are not recorded", error=str(error))


async def _patch_record(client: Client, record: Mapping[str, str]) -> None:
    try:
        await client.patch(
            CONFIGMAPS,
            names.SHIPPED_TYPES,
            {"data": dict(record)},
            namespace=names.SYSTEM_NAMESPACE,
            field_manager=names.FIELD_MANAGER,
        )
    except ApiError as error:
        _log.warning("shipped FederatedTypeConfigs are not recorded", error=str(error))


def _to_text(part: Mapping[str, Any]) -> str:
    return orjson.dumps(part, option=orjson.OPT_SORT_KEYS).decode()


def _from_text(text: str) -> Object:
    part = orjson.loads(text)
    if not isinstance(part, dict):
        raise TypeError(f"the record in ConfigMap {names.SHIPPED_TYPES} is not an object; delete its entry")
    return part
