"""A transport to a registry in the same process, without sockets, HTTP and TLS.

Callers receive objects of their own, parsed from the stored bytes, as over the network; the registry never holds a
caller's object. It passes the same conformance suite as `HTTPTransport` and lives as long as the registry.
"""

from typing import assert_never
from urllib.parse import parse_qsl, urlsplit

import orjson

from federation.apimachinery.errors import ApiError, Bug, ClusterUnreachable, MethodNotAllowed
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.store.fencing import Fence, fenced
from federation.apiserver.verbs.requestoptions import DeleteOptions, ListOptions, Requester, WriteOptions, own_user
from federation.client.client import Client, Request, Watch, WatchEvent, WatchEventType
from federation.client.listdocument import Items, Text
from federation.client.localraw import get_raw

_VERBS = {"apply": "patch", **{verb: verb for verb in ("get", "list", "watch", "create", "update", "patch", "delete")}}
"""The verb that a request needs permission for."""
_TYPES = {type_.value: type_ for type_ in WatchEventType}


class LocalTransport:
    """The registry as a transport. `user_agent` names the field manager of writes that give none.

    `requester` is the user of requests that name none: this process, which admission does not judge, or for example the
    controllers of a simulated cluster.

    With a `fence` writes happen only while it holds; Conflict otherwise.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        user_agent: str = "federation",
        fence: Fence | None = None,
        requester: Requester = own_user,
    ) -> None:
        self._registry = registry
        self._requester = requester
        self._fence = fence
        self._user_agent = user_agent
        self._is_closed = False
        self._infos: dict[Resource, KindInfo] = {}
        self._generation = -1

    async def request(self, request: Request) -> Object:
        """Call the registry's verb and return the parsed result."""
        if self._fence is None:
            return await self._call(request)
        with fenced(self._fence):
            return await self._call(request)

    async def _call(self, request: Request) -> Object:
        verb, resource, namespace, name, subresource = request[:5]
        info, registry = self._info(resource), self._registry
        is_permitted = request.is_review or (request.is_plan and request.dry_run)
        if request.user is not None and not is_permitted:
            registry.check_access(info, _VERBS[verb], namespace, name, request.user, subresource=subresource)
        if verb == "get":  # the most frequent verb, and the only one for which the dispatch is measurable
            return _parse(await registry.get(info, namespace, name))
        match verb:
            case "patch" | "apply":
                options = self._write_options(request)
                written, _ = await registry.patch(
                    info, namespace, name, request.content_type, request.body, options, subresource=subresource
                )
            case "list":
                return await self._list(info, request)
            case "create":
                if subresource:
                    raise MethodNotAllowed(f"create {resource.plural}/{subresource}: not served in process")
                scope = namespace if resource.namespaced else ""
                written = await registry.create(info, scope, _parse(request.body), self._write_options(request))
            case "update":
                scope = namespace if resource.namespaced else ""
                obj, options = _parse(request.body), self._write_options(request)
                written, _ = await registry.update(info, scope, name, obj, options, subresource=subresource)
            case "delete":
                await registry.delete(info, namespace, name, _delete_options(request, self._requester))
                return {}
            case "watch":
                raise Bug("a watch is a stream, not a request")
            case _:
                assert_never(verb)
        return _parse(written)

    async def stream(self, request: Request) -> Watch:
        """Yield an empty batch, then batches of changes; Expired when the start is too old or the reader too slow."""
        options = ListOptions(
            label_selector=request.label_selector,
            field_selector=request.field_selector,
            resource_version=request.resource_version,
            allow_watch_bookmarks=True,
            timeout_s=request.timeout_s,
        )
        batches = self._registry.watch(self._info(request.resource), request.namespace, options)
        yield []
        try:
            async for batch in batches:
                yield [WatchEvent(_TYPES[type_], _parse(value)) for type_, value in batch]
        finally:
            await batches.aclose()

    async def raw(
        self,
        method: str,
        path: str,
        body: bytes | None,  # noqa: ARG002  # only GET is served
        timeout_s: float,  # noqa: ARG002  # nothing here can hang
        accept: str = "",  # noqa: ARG002  # documents are in the classic form
    ) -> tuple[int, bytes]:
        """Serve health, version and discovery, and GET of objects; anything else is a 404 or 405 Status."""
        parts = urlsplit(path)
        try:
            return 200, await get_raw(self._registry, method, parts.path, dict(parse_qsl(parts.query)))
        except ApiError as problem:
            return problem.code, orjson.dumps(problem.to_status())

    async def close(self) -> None:
        """Refuse further calls."""
        self._is_closed = True

    async def _list(self, info: KindInfo, request: Request) -> Object:
        options = ListOptions(
            label_selector=request.label_selector,
            field_selector=request.field_selector,
            limit=request.limit,
            continue_token=request.continue_token,
        )
        page = await self._registry.list(info, request.namespace, options)
        metadata = {"resourceVersion": str(page.resource_version), "continue": page.continue_token}
        return {"metadata": metadata, "items": Items(page.items, _parse)}

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

    def _write_options(self, request: Request) -> WriteOptions:
        return WriteOptions(
            field_manager=request.field_manager,
            force=request.force,
            dry_run=request.dry_run,
            user_agent=self._user_agent,
            user=_requester(request, self._requester),
            ignores_taken_name=request.is_review,
            is_plan=request.is_plan and request.dry_run,
        )


class LocalClient(Client):
    """A client of a registry in the same process."""

    def __init__(
        self,
        registry: Registry,
        *,
        user_agent: str = "federation",
        fence: Fence | None = None,
        requester: Requester = own_user,
    ) -> None:
        super().__init__(LocalTransport(registry, user_agent=user_agent, fence=fence, requester=requester))


def _requester(request: Request, own: Requester) -> Requester:
    user = request.user
    return own if user is None else lambda: dict(user)


def _delete_options(request: Request, own: Requester) -> DeleteOptions:
    return DeleteOptions(
        user=_requester(request, own),
        propagation_policy=request.propagation_policy,
        grace_period_s=request.grace_period_s,
        uid=request.uid,
        resource_version=request.resource_version,
    )


def _parse(value: Text) -> Object:
    found: Object = orjson.loads(value)
    return found
