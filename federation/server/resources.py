"""The REST verbs of resources: one HTTP request becomes one call of the registry, and its bytes become the answer.

It knows methods, status codes, bodies and subresources; what a write means is the registry's knowledge. Requests arrive
authenticated and authorized. Reviews (`reviews.py`) and watches (`watching.py`) are handled beside it.
"""

from dataclasses import dataclass, replace

import orjson

from federation.base.clock import Clock
from federation.base.errors import BadRequest, MethodNotAllowed, NotFound
from federation.registry.kinds import KindInfo
from federation.registry.options import DeleteOptions, WriteOptions
from federation.registry.registry import Registry
from federation.server import bodies, decoding, parameters
from federation.server.asgi import Request, is_true
from federation.server.escalation import RBAC_GROUP, check_escalation
from federation.server.identity import MASTERS
from federation.server.negotiation import PLAIN, Answer, Shape, negotiate
from federation.server.paths import ResourcePath
from federation.server.rendering import include_object, is_status, render_list, render_object
from federation.server.reviews import Authorizer
from federation.server.watching import Watches

_APPLY = "application/apply-patch+yaml"
_CREATED_BY_POST = frozenset({"binding", "eviction"})
_NAMES_LENGTH_MAX = 1500
_OPTIONS_KINDS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was found to be about a served kind."""

    request: Request
    path: ResourcePath
    info: KindInfo
    answer: Answer


def is_watch(request: Request, path: ResourcePath) -> bool:
    """Return whether a GET asks for a stream of changes."""
    return path.is_watch or ("watch" in request.query and is_true(request.query["watch"]))


class Resources:
    """Serves resource paths of one registry."""

    def __init__(
        self, registry: Registry, watches: Watches, authorizer: Authorizer, *, clock: Clock, body_bytes_max: int
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._authorizer = authorizer
        self._watches = watches
        self._body_bytes_max = body_bytes_max

    async def serve(self, request: Request, path: ResourcePath, verb: str) -> None:
        """Answer one request; every refusal is an ApiError."""
        info = self._registry.kinds.lookup(path.group, path.version, path.plural)
        _check_scope(info, path, verb)
        if info.warning:
            request.warnings.append(info.warning)
        call = Call(request, path, info, negotiate(request.headers.get(b"accept", b"")))
        if call.answer.shape is Shape.TABLE:
            include_object(request.query)  # what cannot be answered is refused before anything is written
        match verb:
            case "get":
                await self._get(call)
            case "list":
                await self._list(call)
            case "watch":
                await self._watch(call)
            case "create":
                await self._create(call)
            case "update":
                await self._update(call)
            case "patch":
                await self._patch(call)
            case "delete":
                await self._delete(call)
            case _:
                await self._delete_collection(call)

    async def _get(self, call: Call) -> None:
        path = call.path
        revision = call.request.query.get("resourceVersion", "")
        value = await self._registry.get(
            call.info, path.namespace, path.name, subresource=path.subresource, resource_version=revision
        )
        await self._respond(call, 200, value)

    async def _list(self, call: Call) -> None:
        options = parameters.to_list_options(call.request.query)
        result = await self._registry.list(call.info, call.path.namespace, options)
        body, content_type = render_list(call.info, result, call.answer, call.request.query, self._clock.now())
        await call.request.respond(200, body, content_type=content_type)

    async def _watch(self, call: Call) -> None:
        options = parameters.to_list_options({**call.request.query, "watch": "true"})
        if call.path.name:
            selector = f"metadata.name={call.path.name}"
            merged = f"{options.field_selector},{selector}" if options.field_selector else selector
            options = replace(options, field_selector=merged)
        await self._watches.serve(call.request, call.info, call.path.namespace, options, call.answer)

    async def _create(self, call: Call) -> None:
        path = call.path
        if path.name and path.subresource not in _CREATED_BY_POST:
            raise _not_allowed()
        options = self._write_options(call, "create")
        obj = await self._object(call, options)
        self._guard(call, obj)
        value = await self._registry.create(
            call.info, path.namespace, obj, options, name=path.name, subresource=path.subresource
        )
        await self._respond(call, 201, value)

    async def _update(self, call: Call) -> None:
        path = call.path
        options = self._write_options(call, "update")
        obj = await self._object(call, options)
        self._guard(call, obj)
        value, is_created = await self._registry.update(
            call.info, path.namespace, path.name, obj, options, subresource=path.subresource
        )
        await self._respond(call, 201 if is_created else 200, value)

    async def _patch(self, call: Call) -> None:
        path, request = call.path, call.request
        options = self._write_options(call, "patch")
        patch_type = request.header(b"content-type").partition(";")[0].strip().lower()
        patch = await request.body(self._body_bytes_max)
        decoding.check_patch_depth(patch)
        if patch_type == _APPLY and not decoding.is_json(patch):
            patch = await bodies.to_json(patch, patch_type)
        arguments = (call.info, path.namespace, path.name, patch_type, patch)
        if path.group == RBAC_GROUP and MASTERS not in request.user.groups:
            # What the patch would grant is known only from its result.
            trial, _ = await self._registry.patch(*arguments, replace(options, dry_run=True))
            self._guard(call, orjson.loads(trial))
        value, is_created = await self._registry.patch(*arguments, options, subresource=path.subresource)
        await self._respond(call, 201 if is_created else 200, value)

    async def _delete(self, call: Call) -> None:
        path = call.path
        if path.subresource:
            raise _not_allowed()
        options = await self._delete_options(call)
        value, is_gone = await self._registry.delete(call.info, path.namespace, path.name, options)
        # 202 only for who asked for cascading in the old way, as in kube-apiserver.
        status = 202 if not is_gone and options.orphan_dependents is False else 200
        await self._respond(call, status, value)

    async def _delete_collection(self, call: Call) -> None:
        if "deletecollection" not in call.info.verbs:
            raise _not_allowed()
        selection = parameters.to_list_options(call.request.query)
        options = await self._delete_options(call)
        result = await self._registry.delete_collection(call.info, call.path.namespace, selection, options)
        body, content_type = render_list(call.info, result, call.answer, call.request.query, self._clock.now())
        await call.request.respond(200, body, content_type=content_type)

    async def _respond(self, call: Call, status: int, value: bytes) -> None:
        if call.answer is not PLAIN and not is_status(value):
            value, content_type = render_object(call.info, value, call.answer, call.request.query, self._clock.now())
            await call.request.respond(status, value, content_type=content_type)
        elif "pretty" in call.request.query:
            value, content_type = render_object(call.info, value, PLAIN, call.request.query, self._clock.now())
            await call.request.respond(status, value, content_type=content_type)
        else:
            await call.request.respond(status, value)

    def _guard(self, call: Call, obj: dict[str, object]) -> None:
        if call.path.group == RBAC_GROUP:
            check_escalation(self._authorizer, call.request.user, call.info, call.path.namespace, obj)

    def _write_options(self, call: Call, verb: str) -> WriteOptions:
        request = call.request
        return parameters.to_write_options(
            request.query,
            request.header(b"user-agent"),
            request.warnings,
            _OPTIONS_KINDS[verb],
            request.user.to_info,
            request.annotations,
        )

    async def _object(self, call: Call, options: WriteOptions) -> dict[str, object]:
        """Read and decode the body; a field that is set twice is a warning, or refused under Strict."""
        obj, duplicates = await bodies.read_object(call.request, self._body_bytes_max)
        if duplicates and options.field_validation != "Ignore":
            texts = [f'duplicate field "{name}"' for name in duplicates]
            if options.field_validation == "Strict":
                raise BadRequest("strict decoding error: " + ", ".join(texts))
            options.warnings.extend(texts)
        return obj

    async def _delete_options(self, call: Call) -> DeleteOptions:
        request = call.request
        body = await self._delete_body(call)
        return parameters.to_delete_options(
            request.query, body, request.warnings, request.user.to_info, request.annotations
        )

    async def _delete_body(self, call: Call) -> dict[str, object] | None:
        body = await call.request.body(self._body_bytes_max)
        if not body.strip():
            return None
        return (await bodies.to_object(body, call.request.header(b"content-type")))[0]


def _check_scope(info: KindInfo, path: ResourcePath, verb: str) -> None:
    """Refuse paths that kube-apiserver does not have: wrong scope, unknown subresource, unnamed writes."""
    if path.subresource and path.subresource not in info.subresources:
        raise _not_found()
    if len(path.namespace) + len(path.name) > _NAMES_LENGTH_MAX or "\0" in path.namespace or "\0" in path.name:
        raise _not_found()  # nothing can have such a name
    if info.resource.namespaced:
        if not path.namespace:
            if path.name:
                raise _not_found()
            if verb in {"create", "deletecollection"}:
                raise _not_allowed()
    elif path.namespace:
        raise _not_found()
    if not path.name and verb in {"update", "patch"}:
        raise _not_allowed()
    if not path.subresource and verb not in info.verbs:
        raise _not_allowed()


def _not_found() -> NotFound:
    return NotFound("the server could not find the requested resource")


def _not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource")
