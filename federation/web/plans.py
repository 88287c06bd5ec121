"""Plans for users of namespaces: `POST /federation/v1/plan`, computed from objects that these users may not read.

A plan depends on all clusters and on cluster-wide policies, which a role in a namespace may not list. The control plane
reads them with its own rights, and tells only what `fedctl why` would tell after the change: objects in the namespaces
of the changes, of kinds that the user may list, with their clusters and reasons. The changes are dry runs in the name
of the user, each with his rights, so users who may not write an object cannot plan it. Clusters, their free resources
and problems of other objects are no part of the answer.

Decision: docs/decisions/0121-plans-of-a-namespace-are-computed-on-the-host.md
"""

from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import orjson
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS
from federation.apimachinery.amounts import to_count
from federation.apimachinery.errors import (
    BadRequest,
    ConfigurationError,
    Forbidden,
    NotFound,
)
from federation.apimachinery.resources import Object, UserInfo
from federation.apimachinery.usedtime import charged
from federation.apiserver.http.nonresource import AUTHORIZE, USER
from federation.client.client import Client, Transport, Watch
from federation.client.client import Request as HostRequest
from federation.plans.diffs import without_secrets
from federation.plans.documents import to_documents
from federation.plans.edits import Verb
from federation.plans.inventory import read_inventory
from federation.plans.planner import Planners
from federation.plans.requestedchanges import RequestedChanges, ResolvedChanges, resolve_changes
from federation.scheduling.whatif.compute import ORDER_WARNING
from federation.scheduling.whatif.planresult import Plan, to_json
from federation.scheduling.whatif.state import CONTEXT, ObjectChange, ObjectSet
from federation.web.requests import check_parameters, json_response, may_list, read_body, to_read

PATH = "/federation/v1/plan"
_BODY_BYTES_MAX = 1 << 20
_TOO_LARGE = f"the changes are larger than {_BODY_BYTES_MAX >> 10} KiB; plan fewer"
_EDITS_MAX = 200
_RENDERED_BYTES_MAX = 32 << 20
"""Bytes of the manifests that a plan may compute: what changes, once for each cluster."""
_ORIGIN_MAX = 200
_DISCOVERY: Final = ("/api", "/apis")
_Authorize = Callable[..., Awaitable[None]]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")

    origin: str = Field("manifest", max_length=_ORIGIN_MAX)
    manifest: dict[str, Any]


class _Wanted(BaseModel):
    """The body of a request, with the names of the options of `fedctl plan`."""

    model_config = ConfigDict(extra="forbid")

    documents: list[_Document] = Field(default_factory=list, max_length=_EDITS_MAX)
    replicas: list[str] = Field(default_factory=list, max_length=_EDITS_MAX)
    deletions: list[str] = Field(default_factory=list, max_length=_EDITS_MAX)
    namespace: str = "default"
    explain: bool = False


@dataclass(frozen=True, slots=True)
class PlanView:
    """Computes plans; `host` has the rights of the control plane."""

    host: Client
    planners: Planners
    paths: frozenset[str] = frozenset({PATH})

    def add_routes(self, web: FastAPI) -> None:
        """Serve the plan."""

        @web.post(PATH)
        async def plan(request: Request) -> Response:
            """Return the plan of the changes in the body, as `fedctl plan -o json` prints it."""
            check_parameters(request, frozenset())
            user, authorize = request.scope[USER], request.scope[AUTHORIZE]
            wanted = _parse(await read_body(request, _BODY_BYTES_MAX, _TOO_LARGE))
            async with self.planners.of(self.host, user.name) as planner:
                own = Client(_UserTransport(self.host.transport, authorize, user.to_info()))
                resolved = await self._resolve(own, authorize, wanted)
                namespaces = frozenset(edit.namespace for edit in resolved.edits)
                world = await read_inventory(self.host, namespaces)
                _check_size(world, resolved.changes)
                found = await planner.plan(world, resolved.changes, is_explained=wanted.explain)
                visible = await _visible(request, found, namespaces, resolved.changes)
            return json_response(200, {"kind": "Plan", **without_secrets(to_json(visible))})

    async def _resolve(self, own: Client, authorize: _Authorize, wanted: _Wanted) -> ResolvedChanges:
        """Return the changes, as dry runs with the rights of the user."""
        if len(wanted.documents) + len(wanted.replicas) + len(wanted.deletions) > _EDITS_MAX:
            raise BadRequest(f"plan at most {_EDITS_MAX} changes at once")
        types = ObjectSet({FEDERATED_TYPE_CONFIGS: (await self.host.list(FEDERATED_TYPE_CONFIGS)).items})
        try:
            documents = [found for each in wanted.documents for found in to_documents(each.origin, each.manifest)]
            if len(documents) > _EDITS_MAX:
                raise BadRequest(f"plan at most {_EDITS_MAX} changes at once")
            requested = RequestedChanges(
                documents, replicas=wanted.replicas, deletions=wanted.deletions, namespace=wanted.namespace
            )
            resolved = await resolve_changes(own, types, requested)
        except ConfigurationError as error:
            refused = error.__cause__
            raise (Forbidden if isinstance(refused, Forbidden) else BadRequest)(str(error)) from error
        for edit in resolved.edits:
            if edit.verb is Verb.DELETE:
                await authorize([to_read(edit.resource, "delete", edit.namespace, edit.name)], is_path_enough=False)
        if not resolved.edits:
            raise BadRequest("documents: Required value: name manifests, replicas or deletions to plan")
        return resolved


class _UserTransport:
    """Reads and dry runs of single objects in namespaces, with the rights and in the name of a user; nothing else."""

    def __init__(self, transport: Transport, authorize: _Authorize, user: UserInfo) -> None:
        self._transport = transport
        self._authorize = authorize
        self._user = user

    async def request(self, request: HostRequest) -> Object:
        """Return the object; Forbidden for what the user may not do, and for anything but a plan's requests."""
        resource = request.resource
        if not (resource.namespaced and request.namespace):
            raise Forbidden(f"{resource.plural} have no namespace; planning them needs the right to list all clusters")
        if request.verb == "get":
            await self._check(request, "get")
        elif request.verb in ("patch", "apply") and request.dry_run and not request.subresource:
            await self._check(request, "patch")
            if request.verb == "apply" and not await self._exists(request):
                await self._check(request, "create")
        else:
            raise Forbidden(f"a plan sends no {request.verb}")
        return await self._transport.request(request._replace(user=self._user))

    async def _check(self, request: HostRequest, verb: str) -> None:
        right = to_read(request.resource, verb, request.namespace, request.name)
        await self._authorize([right], is_path_enough=False)

    async def _exists(self, request: HostRequest) -> bool:
        try:
            await self._transport.request(HostRequest("get", request.resource, request.namespace, request.name))
        except NotFound:
            return False
        return True

    def stream(self, request: HostRequest) -> Watch:
        """Refuse watches."""
        raise Forbidden(f"a plan sends no {request.verb}")

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        """Return a document of discovery, which every user may read."""
        root = f"/{path.split('/', 2)[1]}" if path.startswith("/") else ""
        if method != "GET" or root not in _DISCOVERY or path.count("/") > 3:
            raise Forbidden("a plan reads discovery only")
        return await self._transport.raw(method, path, body, timeout_s, accept)

    async def close(self) -> None:
        """Do nothing: the transport belongs to the control plane."""


def _parse(body: bytes) -> _Wanted:
    try:
        return _Wanted.model_validate(orjson.loads(body))
    except ValueError as error:
        raise BadRequest(f"the body is no request for a plan: {' '.join(str(error).split())[:500]}") from error


def _check_size(world: ObjectSet, changes: Sequence[ObjectChange]) -> None:
    """Raise BadRequest if the plan would compute more manifests than one user may."""
    concerned: list[Any] = [change.after for change in changes if change.after is not None]
    if any(change.resource in CONTEXT for change in changes):  # policies, for example: any object may be affected
        concerned += [each["spec"].get("template") for each in world.federated()]
    clusters = len(world.list(FEDERATED_CLUSTERS))
    with charged():
        size = sum(len(orjson.dumps(each)) for each in concerned)
    if size * clusters > _RENDERED_BYTES_MAX:
        raise BadRequest(
            f"the changes concern {to_count(len(concerned), 'object')} with {size >> 10} KiB, which are too many for a"
            f" plan in {to_count(clusters, 'cluster')}; plan fewer changes at once"
        )


async def _visible(request: Request, plan: Plan, namespaces: AbstractSet[str], changes: Sequence[ObjectChange]) -> Plan:
    """Return what the user may see of a plan: objects that he may list, and problems of his changes."""
    kinds = {(obj.resource, obj.namespace) for obj in plan.objects if obj.namespace in namespaces}
    allowed = {kind for kind in kinds if await may_list(request, *kind)}
    named = {(change.resource, change.namespace, change.name) for change in changes}
    objects = [
        obj
        for obj in plan.objects
        if (obj.resource, obj.namespace) in allowed or (obj.resource, obj.namespace, obj.name) in named
    ]
    titles = tuple(f"{change.resource.kind} {change.name}" for change in changes)
    problems = [text for text in plan.problems if text.startswith((*titles, ORDER_WARNING))]
    if hidden := sorted({resource.plural for resource, _ in kinds - allowed}):
        problems.append(f"{', '.join(hidden)} may change too; they are not shown, because you may not list them")
    return Plan(objects, examined=plan.examined, problems=problems)
