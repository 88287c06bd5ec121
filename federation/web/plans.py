"""Plans for users of namespaces: `POST /federation/v1/plan`, computed from objects that these users may not read.

`GET` returns the settings that a plan which `fedctl` computes itself depends on.

A plan depends on all clusters and on cluster-wide policies, which a role in a namespace may not list. The control plane
reads them with its own rights, and tells only what `fedctl why` would tell after the change: objects in the namespaces
of the changes, of kinds that the user may list, with their clusters and reasons. The changes are dry runs in the name
of the user, each with his rights: he needs the verb `plan` for an object, which allows nothing else, or those of the
write. Clusters, their free resources and problems of other objects are part of the answer only for users who may list
FederatedClusters.

Decisions: docs/decisions/0121-plans-of-a-namespace-are-computed-on-the-host.md,
docs/decisions/0126-a-review-is-a-plan-without-rights-to-write.md
"""

from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from federation.api.resources import (
    FEDERATED_CLUSTERS,
    FEDERATED_TYPE_CONFIGS,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,
)
from federation.apimachinery import nameformats
from federation.apimachinery.amounts import to_count
from federation.apimachinery.errors import (
    BadRequest,
    ConfigurationError,
    Forbidden,
    NotFound,
)
from federation.apimachinery.resources import GroupKind, Object, Resource, UserInfo
from federation.apimachinery.usedtime import charged
from federation.apiserver.http.nonresource import AUTHORIZE, USER
from federation.client.client import Client, Transport, Watch
from federation.client.client import Request as HostRequest
from federation.plans.diffs import without_secrets
from federation.plans.documents import to_documents
from federation.plans.edits import Edit, Verb
from federation.plans.inventory import read_inventory
from federation.plans.planfile import basis_to_json, federated_key, seen_by, to_plan_file
from federation.plans.planner import Planners
from federation.plans.requestedchanges import RequestedChanges, ResolvedChanges, resolve_changes
from federation.plans.review import without_manifests
from federation.scheduling.chain import Chain
from federation.scheduling.hostlimits import to_document
from federation.scheduling.whatif.affected import affects_others
from federation.scheduling.whatif.compute import ORDER_WARNING
from federation.scheduling.whatif.planresult import Plan, PlannedHold, to_json
from federation.scheduling.whatif.state import FEDERATED, ObjectChange, ObjectSet, federated_types
from federation.web.requests import json_response, may_list, read_body, to_read

PATH = "/federation/v1/plan"
_BODY_BYTES_MAX = 1 << 20
_TOO_LARGE = f"the changes are larger than {_BODY_BYTES_MAX >> 10} KiB; plan fewer"
_EDITS_MAX = 200
_RENDERED_BYTES_MAX = 32 << 20
"""Bytes of the manifests that a plan may compute: what changes, once for each cluster."""
_RENDERED_BYTES_OF_ALL_MAX = 256 << 20
"""The same for a user who may list all clusters."""
_ORIGIN_MAX = 200
PLAN_VERB: Final = "plan"
"""A verb of RBAC: allows nothing but plans of the write."""
_DISCOVERY: Final = ("/api", "/apis")
_Authorize = Callable[..., Awaitable[None]]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")

    origin: str = Field("manifest", max_length=_ORIGIN_MAX)
    manifest: dict[str, Any]


class _Patch(BaseModel):
    """A merge patch of an object of a federated kind, which `fedctl migrate` and `rebalance` plan."""

    model_config = ConfigDict(extra="forbid")

    group: str = ""
    kind: str
    namespace: str
    name: str
    patch: dict[str, Any]


class _Wanted(BaseModel):
    """The body of a request, with the names of the options of `fedctl plan`."""

    model_config = ConfigDict(extra="forbid")

    documents: list[_Document] = Field(default_factory=list, max_length=_EDITS_MAX)
    patches: list[_Patch] = Field(default_factory=list, max_length=_EDITS_MAX)
    replicas: list[str] = Field(default_factory=list, max_length=_EDITS_MAX)
    deletions: list[str] = Field(default_factory=list, max_length=_EDITS_MAX)
    namespace: str = "default"
    explain: bool = False
    manifests: bool = True
    """Whether the answer has the manifests of the members."""
    basis: bool = False
    """Whether the answer has what the plan depends on, for a plan file."""


@dataclass(frozen=True, slots=True)
class PlanView:
    """Computes plans; `host` has the rights of the control plane."""

    host: Client
    planners: Planners
    paths: frozenset[str] = frozenset({PATH})

    def add_routes(self, web: FastAPI) -> None:
        """Serve the plan."""

        @web.get(PATH)
        async def limits(request: Request) -> Response:
            """Return the host's limits of moves, with which `fedctl` plans for those who may list all clusters."""
            if not await may_list(request, FEDERATED_CLUSTERS, ""):
                raise Forbidden("the limits of plans are read by users who may list FederatedClusters")
            return json_response(200, to_document(self.planners.limits))

        @web.post(PATH)
        async def plan(request: Request) -> Response:
            """Return the plan of the changes in the body, as `fedctl plan -o json` prints it."""
            user, authorize = request.scope[USER], request.scope[AUTHORIZE]
            wanted = _parse(await read_body(request, _BODY_BYTES_MAX, _TOO_LARGE))
            async with self.planners.of(self.host, user.name) as planner:
                own = Client(_UserTransport(self.host.transport, authorize, user.to_info()))
                resolved = await self._resolve(own, authorize, wanted)
                namespaces = frozenset(edit.namespace for edit in resolved.edits)
                is_everywhere = "" in namespaces
                world = await read_inventory(self.host, planner.chain, None if is_everywhere else namespaces)
                sees_clusters = await may_list(request, FEDERATED_CLUSTERS, "")
                _check_size(world, resolved.changes, planner.chain, sees_clusters=sees_clusters)
                found = await planner.plan(world, resolved.changes, is_explained=wanted.explain)
                visible = await _visible(
                    request, found, None if is_everywhere else namespaces, resolved.changes, sees_clusters=sees_clusters
                )
                basis = await _basis(request, found, visible, world, resolved) if wanted.basis else {}
            answer = without_secrets(to_json(visible)) if wanted.manifests else without_manifests(to_json(visible))
            return json_response(200, {"kind": "Plan", **answer, **basis})

    async def _resolve(self, own: Client, authorize: _Authorize, wanted: _Wanted) -> ResolvedChanges:
        """Return the changes, as dry runs with the rights of the user."""
        named = [*wanted.documents, *wanted.patches, *wanted.replicas, *wanted.deletions]
        if len(named) > _EDITS_MAX:
            raise BadRequest(f"plan at most {_EDITS_MAX} changes at once")
        types = ObjectSet({FEDERATED_TYPE_CONFIGS: (await self.host.list(FEDERATED_TYPE_CONFIGS)).items})
        try:
            documents = [found for each in wanted.documents for found in to_documents(each.origin, each.manifest)]
            if len(documents) > _EDITS_MAX:
                raise BadRequest(f"plan at most {_EDITS_MAX} changes at once")
            requested = RequestedChanges(
                documents,
                replicas=wanted.replicas,
                deletions=wanted.deletions,
                namespace=wanted.namespace,
                edits=[_edit_of(types, each) for each in wanted.patches],
            )
            resolved = await resolve_changes(own, types, requested)
        except ConfigurationError as error:
            refused = error.__cause__
            raise (Forbidden if isinstance(refused, Forbidden) else BadRequest)(str(error)) from error
        for edit in resolved.edits:
            if edit.verb is Verb.DELETE:
                await _allow(authorize, edit.resource, "delete", edit.namespace, edit.name)
        if not resolved.edits:
            raise BadRequest("documents: Required value: name manifests, replicas or deletions to plan")
        return resolved


def _edit_of(types: ObjectSet, wanted: _Patch) -> Edit:
    """Return the write of a patch, in the version in which the federation reads the kind."""
    title = f"{wanted.kind.lower()}/{wanted.name}"
    type_ = federated_types(types, []).get(GroupKind(wanted.group, wanted.kind))
    if type_ is None:
        raise ConfigurationError(f"{title}: the kind is not federated; give a workload")
    namespace = wanted.namespace if type_.resource.namespaced else ""
    for field, value in (("namespace", namespace), ("name", wanted.name)):
        if problems := nameformats.path_segment(value):
            raise ConfigurationError(f"{title}: {field}: {problems[0]}")
    return Edit(title, Verb.MERGE, type_.resource, namespace, wanted.name, wanted.patch)


class _UserTransport:
    """Reads and dry runs of single objects, with the rights and in the name of a user; nothing else."""

    def __init__(self, transport: Transport, authorize: _Authorize, user: UserInfo) -> None:
        self._transport = transport
        self._authorize = authorize
        self._user = user

    async def request(self, request: HostRequest) -> Object:
        """Return the object; Forbidden for what the user may not do, and for anything but a plan's requests."""
        if request.verb == "get":
            right = to_read(request.resource, "get", request.namespace, request.name)
            await self._authorize([right], is_path_enough=False)
        elif request.verb in ("patch", "apply") and request.dry_run and not request.subresource:
            await self._check(request, "patch")
            if request.verb == "apply" and not await self._exists(request):
                await self._check(request, "create")
        else:
            raise Forbidden(f"a plan sends no {request.verb}")
        return await self._transport.request(request._replace(user=self._user, is_plan=request.dry_run))

    async def _check(self, request: HostRequest, verb: str) -> None:
        await _allow(self._authorize, request.resource, verb, request.namespace, request.name)

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


async def _allow(authorize: _Authorize, resource: Resource, verb: str, namespace: str, name: str) -> None:
    """Raise Forbidden unless the user may make this write, or plan it.

    A plan of a webhook configuration sends requests to its address, so it needs the right to write one.
    """
    try:
        await authorize([to_read(resource, verb, namespace, name)], is_path_enough=False)
    except Forbidden as error:
        if resource == SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS:
            raise
        try:
            await authorize([to_read(resource, PLAN_VERB, namespace, name)], is_path_enough=False)
        except Forbidden:
            raise Forbidden(f"{error.message}; to plan it, the verb {PLAN_VERB} is enough") from error


def _parse(body: bytes) -> _Wanted:
    try:
        return _Wanted.model_validate(orjson.loads(body))
    except ValueError as error:
        raise BadRequest(f"the body is no request for a plan: {' '.join(str(error).split())[:500]}") from error


def _check_size(world: ObjectSet, changes: Sequence[ObjectChange], chain: Chain, *, sees_clusters: bool) -> None:
    """Raise BadRequest if the plan would compute more manifests than one user may.

    A user who may list clusters works for all namespaces.
    """
    concerned: list[Any] = [change.after for change in changes if change.after is not None]
    if any(affects_others(change, chain) for change in changes):  # policies, for example: any object may be affected
        concerned += [each["spec"].get("template") for each in world.federated()]
    clusters = len(world.list(FEDERATED_CLUSTERS))
    with charged():
        size = sum(len(orjson.dumps(each)) for each in concerned)
    if size * clusters > (_RENDERED_BYTES_OF_ALL_MAX if sees_clusters else _RENDERED_BYTES_MAX):
        raise BadRequest(
            f"the changes concern {to_count(len(concerned), 'object')} with {size >> 10} KiB, which are too many for a"
            f" plan in {to_count(clusters, 'cluster')}; plan fewer changes at once"
        )


async def _visible(
    request: Request,
    plan: Plan,
    namespaces: AbstractSet[str] | None,
    changes: Sequence[ObjectChange],
    *,
    sees_clusters: bool,
) -> Plan:
    """Return what the user may see of a plan: objects that he may list, and problems of his changes."""
    kinds = {(obj.resource, obj.namespace) for obj in plan.objects if namespaces is None or obj.namespace in namespaces}
    allowed = {kind for kind in kinds if await may_list(request, *kind)}
    named = {(change.resource, change.namespace, change.name) for change in changes}
    objects = [
        obj
        for obj in plan.objects
        if (obj.resource, obj.namespace) in allowed or (obj.resource, obj.namespace, obj.name) in named
    ]
    titles = tuple(f"{change.resource.kind} {change.name}" for change in changes)
    problems = [text for text in plan.problems if sees_clusters or text.startswith((*titles, ORDER_WARNING))]
    if hidden := sorted({resource.plural for resource, _ in kinds - allowed}):
        problems.append(f"{', '.join(hidden)} may change too; they are not shown, because you may not list them")
    shown = {(obj.namespace, obj.federated_name) for obj in objects}
    return Plan(
        objects,
        examined=plan.examined,
        cluster_resources=plan.cluster_resources if sees_clusters else (),
        stranded=plan.stranded if sees_clusters else (),
        problems=problems,
        holds=[held for hold in plan.holds if (held := _visible_hold(hold, shown, sees_clusters=sees_clusters))],
    )


def _visible_hold(hold: PlannedHold, shown: AbstractSet[tuple[str, str]], *, sees_clusters: bool) -> PlannedHold | None:
    """Return a hold of objects that the user may see, without how many others there are."""
    objects = [key for key in hold.objects if key in shown]
    if not objects or sees_clusters:
        return replace(hold, objects=objects) if objects else None
    return replace(hold, objects=objects, counted=0, size=0, allowed=0)


async def _basis(
    request: Request, plan: Plan, visible: Plan, world: ObjectSet, resolved: ResolvedChanges
) -> dict[str, Any]:
    """Return what a plan file has, as far as the user may see it."""
    everything = to_plan_file(plan, world, resolved.edits, resolved.changes, ())
    objects = {(change.resource, change.namespace, change.name) for change in resolved.changes}
    for obj in visible.objects:
        objects |= {(obj.resource, obj.namespace, obj.name), federated_key(obj)}
    kinds = {(each.resource, each.namespace) for each in everything.observed} - {
        (resource, namespace) for resource, namespace, _ in objects
    }
    allowed = {kind for kind in kinds if kind[0] not in FEDERATED and await may_list(request, *kind)}
    sees_clusters = (FEDERATED_CLUSTERS, "") in allowed
    return {"basis": basis_to_json(seen_by(everything, objects, allowed, sees_clusters=sees_clusters))}
