"""A `Client` in the same process as the registry: the verbs of the API without sockets, HTTP and TLS.

Callers get plain objects of their own, parsed from the stored bytes, exactly as over the network; what they pass in is
serialised, so the registry never holds a caller's object. Watch events are parsed when they are handed out. It passes
the same conformance suite as `HTTPClient` and lives as long as the registry.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from federation.api.resources import Object, Resource
from federation.base.errors import ApiError, ClusterUnreachable, Expired, ServiceUnavailable, StoreError
from federation.client.discovery import answer_raw
from federation.client.protocol import ObjectList, Objects, PatchType, WatchBatch, WatchEvent, WatchEventType
from federation.registry.kinds import KindInfo
from federation.registry.options import DeleteOptions, ListOptions, WriteOptions
from federation.registry.registry import Registry

_TYPES = {type_.value: type_ for type_ in WatchEventType}


def _user() -> dict[str, Any]:
    """Return whom admission is told about: this process itself, with every right."""
    return {"username": "system:apiserver", "groups": ["system:masters", "system:authenticated"]}


class LocalClient:
    """The registry as a Kubernetes API. `user_agent` names the writer where no field manager is given."""

    def __init__(self, registry: Registry, *, user_agent: str = "federation") -> None:
        self._registry = registry
        self._user_agent = user_agent
        self._is_closed = False
        self._infos: dict[Resource, KindInfo] = {}
        self._generation = -1

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """Return the object; NotFound when there is none."""
        try:
            return _parse(await self._registry.get(self._info(resource), namespace, name))
        except StoreError as problem:
            raise _unavailable(problem) from problem

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Return one page of the collection."""
        options = ListOptions(
            label_selector=label_selector, field_selector=field_selector, limit=limit, continue_token=continue_token
        )
        try:
            page = await self._registry.list(self._info(resource), namespace, options)
        except StoreError as problem:
            raise _unavailable(problem) from problem
        return ObjectList([_parse(item) for item in page.items], str(page.resource_version), page.continue_token)

    async def create(self, resource: Resource, obj: Object, *, field_manager: str = "") -> Object:
        """Create the object in its metadata.namespace and return it as stored."""
        namespace = obj["metadata"].get("namespace", "") if resource.namespaced else ""
        try:
            return _parse(
                await self._registry.create(self._info(resource), namespace, _copy(obj), self._writing(field_manager))
            )
        except StoreError as problem:
            raise _unavailable(problem) from problem

    async def update(
        self, resource: Resource, obj: Object, *, subresource: str = "", field_manager: str = ""
    ) -> Object:
        """Replace the object, or its subresource."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "") if resource.namespaced else ""
        try:
            written, _ = await self._registry.update(
                self._info(resource),
                namespace,
                metadata["name"],
                _copy(obj),
                self._writing(field_manager),
                subresource=subresource,
            )
        except StoreError as problem:
            raise _unavailable(problem) from problem
        return _parse(written)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: bytes | Object | Objects,
        *,
        patch_type: PatchType,
        namespace: str = "",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Patch the object, or its subresource, and return it."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        try:
            written, _ = await self._registry.patch(
                self._info(resource),
                namespace,
                name,
                patch_type.value,
                data,
                self._writing(field_manager, force=force, dry_run=dry_run),
                subresource=subresource,
            )
        except StoreError as problem:
            raise _unavailable(problem) from problem
        return _parse(written)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        propagation_policy: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_period_s: int | None = None,
    ) -> None:
        """Ask for deletion, with preconditions."""
        options = DeleteOptions(
            user=_user,
            propagation_policy=propagation_policy,
            grace_period_s=grace_period_s,
            uid=uid,
            resource_version=resource_version,
        )
        try:
            await self._registry.delete(self._info(resource), namespace, name, options)
        except StoreError as problem:
            raise _unavailable(problem) from problem

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: int = 0,
    ) -> AsyncIterator[WatchBatch]:
        """Yield an empty batch, then batches of changes; Expired when the start is too old or we are too slow."""
        options = ListOptions(
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            allow_watch_bookmarks=True,
            timeout_s=timeout_s,
        )
        batches = self._registry.watch(self._info(resource), namespace, options)
        yield []
        try:
            async for batch in batches:
                yield [WatchEvent(_TYPES[type_], _parse(value)) for type_, value in batch]
        except StoreError as problem:
            # As the server does: whatever happened to the stream, listing again is right.
            raise Expired(f"the watch was ended by the store: {problem}") from problem
        finally:
            if isinstance(batches, AsyncGenerator):
                await batches.aclose()

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,  # noqa: ARG002  # the protocol's; only GET is answered
        timeout_s: float = 30.0,  # noqa: ARG002  # nothing here can hang
    ) -> tuple[int, bytes]:
        """Answer health, version and discovery, and GET of objects; anything else is a 404 or 405 Status."""
        parts = urlsplit(path)
        parameters = {**dict(parse_qsl(parts.query)), **(query or {})}
        try:
            return 200, await answer_raw(self._registry, method, parts.path, parameters)
        except ApiError as problem:
            return problem.code, orjson.dumps(problem.to_status())
        except StoreError as problem:
            failure = _unavailable(problem)
            return failure.code, orjson.dumps(failure.to_status())

    async def close(self) -> None:
        """Refuse further calls."""
        self._is_closed = True

    def _info(self, resource: Resource) -> KindInfo:
        if self._is_closed:
            raise ClusterUnreachable("the client is closed")
        kinds = self._registry.kinds
        if self._generation != kinds.generation:
            self._infos.clear()
            self._generation = kinds.generation
        info = self._infos.get(resource)
        if info is None:
            info = self._infos[resource] = kinds.lookup(resource.group, resource.version, resource.plural)
        return info

    def _writing(self, field_manager: str, *, force: bool = False, dry_run: bool = False) -> WriteOptions:
        return WriteOptions(
            field_manager=field_manager, force=force, dry_run=dry_run, user_agent=self._user_agent, user=_user
        )


def _parse(value: bytes) -> Object:
    found: Object = orjson.loads(value)
    return found


def _copy(obj: Object) -> Object:
    """Return an object that the registry may keep and change."""
    found: Object = orjson.loads(orjson.dumps(obj))
    return found


def _unavailable(problem: StoreError) -> ServiceUnavailable:
    return ServiceUnavailable(f"the store does not answer: {problem}")
