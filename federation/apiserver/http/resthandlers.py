"""The verbs of resources: one HTTP request becomes one call of the registry, and its bytes become the response.

It owns methods, status codes, request bodies and subresources; the registry owns the meaning of reads and writes.
Requests arrive authenticated and authorized. `watchresponses.py` streams watches.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, BadRequest, MethodNotAllowed, NotFound, not_served
from federation.apimachinery.paths import ResourcePath
from federation.apimachinery.selectors import escape_field_value
from federation.apiserver.http import bodies, parameters
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.bodies import BodyLimits
from federation.apiserver.http.hiddencontent import HiddenContent, Hiding
from federation.apiserver.http.negotiation import PLAIN, Representation, Shape, negotiate
from federation.apiserver.http.readers import Reader, Readers
from federation.apiserver.http.rendering import (
    check_metadata_form,
    include_object,
    is_status,
    render_list,
    render_object,
)
from federation.apiserver.http.statuserrors import method_not_allowed
from federation.apiserver.http.watchresponses import WatchServer
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.schema.model import ANYTHING
from federation.apiserver.verbs.deletes import success_status
from federation.apiserver.verbs.fieldvalidation import report_body_problems
from federation.apiserver.verbs.patching import APPLY
from federation.apiserver.verbs.preparation import WHOLE_OBJECTS
from federation.apiserver.verbs.requestoptions import DeleteOptions, ListOptions, WriteOptions

SHOWN = "federation.shown"
"""The key in a request's scope of a function that returns the names of what its user may see in a list."""
_COLLECTION_VERBS = frozenset({"list", "deletecollection"})
_CHANGES = frozenset({"create", "update", "patch", "delete"})
_BINDINGS = "bindings"
_CREATED_BY_POST = frozenset({"binding", "eviction"})
_NAMES_LENGTH_MAX = 1500
_OPTIONS_KINDS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """A request for a served kind."""

    request: Request
    path: ResourcePath
    info: KindInfo
    representation: Representation
    hiding: Hiding | None = None
    """What of the answer the user may not see."""


class RESTHandlers:
    """Serves the resource paths of one registry."""

    def __init__(
        self,
        registry: Registry,
        watches: WatchServer,
        *,
        clock: Clock,
        limits: BodyLimits,
        readers: Readers,
        hidden: HiddenContent,
    ) -> None:
        self._registry = registry
        self._hidden = hidden
        self._readers = readers
        self._clock = clock
        self._watches = watches
        self._limits = limits
        self._handlers: dict[str, Callable[[ResourceRequest], Awaitable[None]]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    async def serve(self, request: Request, path: ResourcePath, verb: str) -> None:
        """Answer one request; raise an ApiError to refuse it."""
        if path.plural == _BINDINGS and not path.group:
            await self._bind(request, path, verb)
            return
        info = self._registry.kinds.lookup(path.group, path.version, path.plural)
        _check_scope(info, path, verb)
        if info.warning:
            request.warnings.append(info.warning)
        hiding = await self._hidden.of(request.user, path, verb, info)
        call = ResourceRequest(request, path, info, negotiate(request.headers.get(b"accept", b"")), hiding)
        # What cannot be answered is refused before anything is written.
        if call.representation.shape is Shape.TABLE:
            include_object(request.query)
        elif call.representation.shape is Shape.METADATA and verb != "watch":
            check_metadata_form(info, call.representation, is_list=verb in _COLLECTION_VERBS)
        try:
            await self._handlers[verb](call)
        except NotFound:
            if verb in _CHANGES and (reader := self._reader(call)) is not None:
                await _check_absent(call, reader)
            raise

    async def _get(self, call: ResourceRequest) -> None:
        path = call.path
        if not path.subresource and (reader := self._reader(call)) is not None:
            value = await reader.get(call.request, call.info, path.namespace, path.name)
        else:
            revision = call.request.query.get("resourceVersion", "")
            value = await self._registry.get(
                call.info, path.namespace, path.name, subresource=path.subresource, resource_version=revision
            )
        if call.hiding is not None:
            call.hiding.check(call.info, path.name, value)
        await self._respond(call, 200, value)

    async def _list(self, call: ResourceRequest) -> None:
        options = _list_options(call)
        if (reader := self._reader(call)) is not None:
            result = await reader.list(call.request, call.info, call.path.namespace, options)
        else:
            result = await self._registry.list(call.info, call.path.namespace, options)
        _warn_of_hidden(call)
        body, content_type = render_list(call.info, result, call.representation, call.request.query, self._clock.now())
        await call.request.respond(200, body, content_type=content_type)

    async def _watch(self, call: ResourceRequest) -> None:
        options = _list_options(call)
        if call.path.name:
            # First, because a backslash at the end of the client's selector would escape the comma in front of it.
            selector = f"metadata.name={escape_field_value(call.path.name)},{options.field_selector}"
            options = replace(options, field_selector=selector)
        reader = self._reader(call)
        await self._watches.serve(
            call.request,
            call.info,
            call.path.namespace,
            options,
            call.representation,
            self._registry.watch if reader is None else partial(reader.watch, call.request),
        )

    def _reader(self, call: ResourceRequest) -> Reader | None:
        path = call.path
        reader = self._readers.get((path.group, path.version, path.plural)) if self._readers else None
        return reader if reader is not None and reader.answers(call.request) else None

    async def _create(self, call: ResourceRequest) -> None:
        path = call.path
        if path.name and path.subresource not in _CREATED_BY_POST:
            raise method_not_allowed()
        options = self._write_options(call, "create")
        obj = await self._object(call, options)
        value = await self._registry.create(
            call.info, path.namespace, obj, options, name=path.name, subresource=path.subresource
        )
        await self._respond(call, 201, value)

    async def _bind(self, request: Request, path: ResourcePath, verb: str) -> None:
        """Assign the pod that the posted Binding names to a node."""
        if not path.namespace or path.version != "v1":
            raise not_served()
        if verb != "create" or path.name:
            raise method_not_allowed()
        info = self._registry.kinds.lookup("", "v1", "pods")
        pod = path._replace(plural="pods", subresource="binding")
        call = ResourceRequest(request, pod, info, negotiate(request.headers.get(b"accept", b"")))
        options = self._write_options(call, "create")
        obj = await self._object(call, options)
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str) or not name:
            raise BadRequest("metadata.name must be set to the name of the pod")
        value = await self._registry.create(info, path.namespace, obj, options, name=name, subresource="binding")
        await self._respond(call, 201, value)

    async def _update(self, call: ResourceRequest) -> None:
        path = call.path
        options = self._write_options(call, "update")
        obj = await self._object(call, options)
        value, is_created = await self._registry.update(
            call.info, path.namespace, path.name, obj, options, subresource=path.subresource
        )
        await self._respond(call, 201 if is_created else 200, value)

    async def _patch(self, call: ResourceRequest) -> None:
        path, request = call.path, call.request
        patch_type = request.header(b"content-type").partition(";")[0].strip().lower()
        options = self._write_options(call, "patch", is_apply=patch_type == APPLY)
        patch, parsed, problems = await bodies.read_patch(request, patch_type, self._limits)
        if problems:
            options = replace(options, body_problems=tuple(problems))
        value, is_created = await self._registry.patch(
            call.info,
            path.namespace,
            path.name,
            patch_type,
            patch,
            options,
            subresource=path.subresource,
            parsed=parsed,
        )
        await self._respond(call, 201 if is_created else 200, value)

    async def _delete(self, call: ResourceRequest) -> None:
        path = call.path
        if path.subresource:
            raise method_not_allowed()
        options = await self._delete_options(call)
        value, is_gone = await self._registry.delete(call.info, path.namespace, path.name, options)
        # As in kube-apiserver, 202 only for the deprecated orphanDependents=false.
        status = 202 if not is_gone and options.orphan_dependents is False else 200
        if call.hiding is not None and call.hiding.hides(value):
            value = success_status(call.info, path.name, encoding.decode_metadata(value).get("uid", ""))
        await self._respond(call, status, value)

    async def _delete_collection(self, call: ResourceRequest) -> None:
        if "deletecollection" not in call.info.verbs:
            raise method_not_allowed()
        options = await self._delete_options(call)
        result = await self._registry.delete_collection(call.info, call.path.namespace, _list_options(call), options)
        _warn_of_hidden(call)
        body, content_type = render_list(call.info, result, call.representation, call.request.query, self._clock.now())
        await call.request.respond(200, body, content_type=content_type)

    async def _respond(self, call: ResourceRequest, status: int, value: bytes) -> None:
        representation = call.representation
        if representation is not PLAIN and is_status(value):
            representation = PLAIN
        if representation is PLAIN and "pretty" not in call.request.query:
            await call.request.respond(status, value)
            return
        body, content_type = render_object(call.info, value, representation, call.request.query, self._clock.now())
        await call.request.respond(status, body, content_type=content_type)

    def _write_options(self, call: ResourceRequest, verb: str, *, is_apply: bool = False) -> WriteOptions:
        request, hiding = call.request, call.hiding
        options = parameters.to_write_options(
            request.query,
            request.header(b"user-agent"),
            request.warnings,
            _OPTIONS_KINDS[verb],
            request.user.to_info,
            request.audit_annotations,
            is_apply=is_apply,
        )
        return (
            options
            if hiding is None
            else replace(options, check_visible=partial(hiding.check, call.info, call.path.name))
        )

    async def _object(self, call: ResourceRequest, options: WriteOptions) -> dict[str, object]:
        """Return the decoded body. A duplicate field adds a warning, or is refused under Strict."""
        info = call.info
        is_whole = call.path.subresource in WHOLE_OBJECTS
        schema = info.schema if is_whole and not info.is_custom else ANYTHING
        obj, problems = await bodies.read_object(call.request, self._limits, schema)
        if problems:
            report_body_problems(info if is_whole else None, obj, problems, options)
        return obj

    async def _delete_options(self, call: ResourceRequest) -> DeleteOptions:
        request = call.request
        data = await request.body(self._limits.bytes_max)
        body = (
            (await bodies.to_object(data, request.header(b"content-type"), self._limits))[0] if data.strip() else None
        )
        return parameters.to_delete_options(
            request.query, body, request.warnings, request.user.to_info, request.audit_annotations
        )


def _list_options(call: ResourceRequest) -> ListOptions:
    options, hiding = parameters.to_list_options(call.request.query), call.hiding
    shown = call.request.scope.get(SHOWN)
    if shown is None and hiding is None:
        return options
    return replace(options, shown=shown, hides=None if hiding is None else hiding.hides)


def _warn_of_hidden(call: ResourceRequest) -> None:
    if call.hiding is not None and call.hiding.has_hidden:
        call.request.warnings.append(call.hiding.warning)


async def _check_absent(call: ResourceRequest, reader: Reader) -> None:
    """Raise MethodNotAllowed if the object that was not found to be changed can be read."""
    path, plural = call.path, call.info.resource.plural
    try:
        await reader.get(call.request, call.info, path.namespace, path.name)
    except ApiError:
        return
    raise MethodNotAllowed(f'{plural} "{path.name}" can only be read here: it is not stored in this API server')


def _check_scope(info: KindInfo, path: ResourcePath, verb: str) -> None:
    """Refuse paths that kube-apiserver does not serve: wrong scope, unknown subresource, unnamed writes."""
    if path.subresource and (path.subresource not in info.subresources or verb == "watch"):
        raise not_served()
    if len(path.namespace) + len(path.name) > _NAMES_LENGTH_MAX or "\0" in path.namespace or "\0" in path.name:
        raise not_served()  # no object can have such a name
    if info.resource.namespaced:
        if not path.namespace:
            if path.name:
                raise not_served()
            if verb in {"create", "deletecollection"}:
                raise method_not_allowed()
    elif path.namespace:
        raise not_served()
    if not path.name and verb in {"update", "patch"}:
        raise method_not_allowed()
    if not path.subresource and verb not in info.verbs:
        raise method_not_allowed()
