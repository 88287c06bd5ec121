"""Objects of all members among the host's own: get and list of one kind, live and read-only.

Nothing is stored or cached. A list asks every cluster at once and fills one page; its continue token says where the
next page begins, so memory does not grow with the number of objects. Each request to a member is made in the name of
the user (`memberreads.py`). Clusters that do not answer in time are named in a warning. `mergedwatch.py` watches.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import (
    ApiError,
    BadRequest,
    ClusterError,
    Conflict,
    Expired,
    Forbidden,
    NotFound,
    ServiceUnavailable,
)
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.readers import WatchBatch
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.requestoptions import ListOptions, ListResult
from federation.client.pool import ClusterPool
from federation.memberproxy import memberreads, mergedtokens
from federation.memberproxy.memberreads import MemberPage, Selection
from federation.memberproxy.mergednames import is_hashed, possible_clusters, raw_name, to_member_fields, to_merged
from federation.memberproxy.mergedtokens import HOST, Position
from federation.memberproxy.mergedwatch import MergedWatches, to_bytes
from federation.memberproxy.placedclusters import Visibility
from federation.memberproxy.readproblems import to_warnings

_COMPONENTS: Final = ("kube-controller-manager", "kube-scheduler", "cloud-controller-manager", "kubelet")
"""Programs that act on the pods of their own cluster: they must not see those of others."""
_WINDOW: Final = 32
"""Clusters that are asked at once for a later page."""


@dataclass(frozen=True, slots=True)
class MergedOptions:
    """Limits of one request for objects of all members."""

    answer_s_max: float = 2.0
    """How long one member may take."""
    page_max: int = 500
    """Objects of one page."""
    page_bytes_max: int = 64 * 1024 * 1024
    """Bytes that all members together may send for one page; each may send at least `member_bytes_min`."""
    member_bytes_min: int = 2 * 1024 * 1024
    clusters_at_once_max: int = 256
    """Clusters that one request asks at the same time."""
    watches_max: int = 200
    """Open watches; each has a connection to every cluster with objects of its namespace."""
    user_watches_max: int = 20
    """Those of one user."""


@dataclass(slots=True)
class _Page:
    """A page that is being filled."""

    limit: int
    items: list[bytes] = field(default_factory=list)
    problems: dict[str, Exception] = field(default_factory=dict)

    @property
    def room(self) -> int:
        return max(0, self.limit - len(self.items))


class MergedReader:
    """A `Reader` of one kind. `registry` has the host's own objects, None for a kind that the host does not have."""

    def __init__(
        self,
        resource: Resource,
        registry: Registry | None,
        pool: ClusterPool,
        visibility: Visibility,
        clock: Clock,
        options: MergedOptions | None = None,
    ) -> None:
        self.resource = resource
        self._registry = registry
        self._pool = pool
        self._visibility = visibility
        self._options = options or MergedOptions()
        self._slots = asyncio.Semaphore(self._options.clusters_at_once_max)
        options = self._options
        self._watches = MergedWatches(
            pool, visibility, clock, watches_max=options.watches_max, user_watches_max=options.user_watches_max
        )

    def answers(self, request: Request) -> bool:
        """Return whether the request is for the merged view: not if a component of Kubernetes sends it."""
        user, agent = request.user.name, request.header(b"user-agent")
        return not (
            user.startswith(("system:node:", "system:serviceaccount:kube-system:"))
            or user.removeprefix("system:") in _COMPONENTS
            or agent.startswith(_COMPONENTS)
        )

    # -- get

    async def get(self, request: Request, info: KindInfo, namespace: str, name: str) -> bytes:
        """Return the object of the host or of the one member that has it."""
        if self._registry is not None:
            with suppress(NotFound):
                return await self._registry.get(info, namespace, name)
        cluster, obj = await self.find(request, namespace, name)
        return to_bytes(self.resource, cluster, obj)

    async def find(self, request: Request, namespace: str, name: str) -> tuple[str, Object]:
        """Return the cluster of a member's object and the object as it is there.

        NotFound; Conflict if several clusters have an object that is called so; ServiceUnavailable if none has it and
        some do not answer.
        """
        candidates = possible_clusters(self._visibility.clusters(namespace), name)
        problems: dict[str, Exception] = {}
        answers = await asyncio.gather(
            *(self._find_in(each, request, namespace, name, problems) for each in candidates)
        )
        found = [(cluster, obj) for cluster, obj in zip(candidates, answers, strict=True) if obj is not None]
        if len(found) > 1:
            places = " and ".join(f'"{obj["metadata"]["name"]}" in cluster "{cluster}"' for cluster, obj in found)
            raise Conflict(
                f'{self.resource.plural} "{name}" means {places}: use federatedclusters/CLUSTER/proxy to choose'
            )
        # An unknown second meaning must not lead a command into the wrong pod.
        unknown = {
            cluster: each
            for cluster, each in problems.items()
            if not isinstance(each, NotFound | Forbidden | BadRequest)
        }
        if unknown:
            raise ServiceUnavailable("; ".join(self._warnings(unknown)))
        if found:
            return found[0]
        for refusal in problems.values():
            if isinstance(refusal, Forbidden):
                raise refusal
        raise NotFound(
            f'{self.resource.group_resource} "{name}" not found',
            details={"name": name, "kind": self.resource.plural, "group": self.resource.group},
        )

    async def _find_in(
        self, cluster: str, request: Request, namespace: str, name: str, problems: dict[str, Exception]
    ) -> Object | None:
        wanted = raw_name(cluster, name)
        try:
            async with asyncio.timeout(self._options.answer_s_max):
                if wanted and not is_hashed(name):
                    return await memberreads.get(self._pool, cluster, request.user, self.resource, namespace, wanted)
                return await self._search(cluster, request, namespace, name) if is_hashed(name) else None
        except (ApiError, ClusterError, TimeoutError) as problem:
            problems[cluster] = problem
            return None

    async def _search(self, cluster: str, request: Request, namespace: str, name: str) -> Object | None:
        """Return the object whose merged name is this one, which does not tell its name in the cluster."""
        selection, token = Selection(self.resource, namespace), ""
        while True:
            page = await self._list_page(cluster, request, selection, self._options.page_max, token, 1)
            for item in page.items:
                if to_merged(cluster, item)["metadata"]["name"] == name:
                    return item
            if not (token := page.token):
                return None

    # -- list

    async def list(self, request: Request, info: KindInfo, namespace: str, options: ListOptions) -> ListResult:
        """Return one page. Without a limit it is as large as possible, and a warning says that there is more."""
        result, problems = await self.read_page(request, info, namespace, options)
        request.warnings.extend(self._warnings(problems))
        return result

    async def read_page(
        self, request: Request, info: KindInfo, namespace: str, options: ListOptions
    ) -> tuple[ListResult, Mapping[str, Exception]]:
        """Return one page, and the problems of clusters whose objects it lacks."""
        if options.resource_version_match == "Exact":
            raise BadRequest("resourceVersionMatch: members have no common history, so Exact cannot be answered")
        page = _Page(min(options.limit or self._options.page_max, self._options.page_max))
        host = replace(options, resource_version="", resource_version_match="")
        if options.continue_token:
            start = mergedtokens.decode_position(options.continue_token)
            left = await self._fill(page, request, info, namespace, host, start)
        else:
            start, left = await self._first(page, request, info, namespace, host)
        if left is not None and not options.limit:
            request.warnings.append(f"the list has the first {len(page.items)} objects only: use limit and continue")
        token = mergedtokens.encode_position(left) if left is not None else ""
        return ListResult(page.items, mergedtokens.encode_revisions(start.revisions), token), page.problems

    async def _first(
        self, page: _Page, request: Request, info: KindInfo, namespace: str, options: ListOptions
    ) -> tuple[Position, Position | None]:
        """Ask all clusters, so that the first page has the revisions of all, and fill the page."""
        clusters = self._visibility.clusters(namespace)
        selections = self._selections(clusters, namespace, options)
        gathered = await self._gather(page, request, selections, {})
        revisions = {cluster: answer.revision for cluster, answer in gathered.items()}
        if self._registry is not None:
            host = await self._registry.list(info, namespace, replace(options, limit=1, continue_token=""))
            revisions[HOST] = str(host.resource_version)
        start = Position(revisions, HOST)
        return start, await self._fill(page, request, info, namespace, options, start, gathered)

    async def _fill(
        self,
        page: _Page,
        request: Request,
        info: KindInfo,
        namespace: str,
        options: ListOptions,
        start: Position,
        gathered: Mapping[str, MemberPage] | None = None,
    ) -> Position | None:
        """Add objects from the position on and return where the next page begins, None at the end.

        `gathered` has first pages of clusters.
        """
        revisions = start.revisions
        if start.cluster == HOST and self._registry is not None:
            own = replace(options, limit=page.limit, continue_token=start.token)
            found = await self._registry.list(info, namespace, own)
            page.items += found.items
            if found.continue_token:
                return Position(revisions, HOST, found.continue_token)
        token = {start.cluster: start.token} if start.cluster != HOST else {}
        clusters = [cluster for cluster in sorted(revisions) if cluster != HOST and cluster >= start.cluster]
        # Clients write tokens: a cluster that the user does not see is not asked, and no warning names it.
        visible = self._visibility.clusters(namespace)
        selections = self._selections([each for each in clusters if each in visible], namespace, options)
        waiting = list(selections)
        while waiting:
            if not page.room:
                return Position(revisions, waiting[0], token.get(waiting[0], ""))
            window = waiting if gathered is not None else waiting[:_WINDOW]
            if gathered is None:
                chosen = {cluster: selections[cluster] for cluster in window}
                gathered = await self._gather(page, request, chosen, token)
            for cluster in window:
                if cluster in gathered:
                    left = await self._add(page, request, cluster, selections[cluster], gathered[cluster])
                    if left is not None:
                        return Position(revisions, cluster, left)
            waiting, gathered = waiting[len(window) :], None
        return None

    async def _add(
        self, page: _Page, request: Request, cluster: str, selection: Selection, found: MemberPage
    ) -> str | None:
        """Add a cluster's objects; return the token to go on with, None when they are all on the page."""
        # A member that ignores limits may fill a page of its own.
        if len(found.items) > page.room and page.items:
            return ""
        while True:
            page.items += [
                to_bytes(self.resource, cluster, item)
                for item in found.items
                if self._visibility.is_visible(cluster, item["metadata"].get("namespace", ""))
            ]
            if not found.token or not page.room:
                return found.token or None
            try:
                async with asyncio.timeout(self._options.answer_s_max):
                    found = await self._list_page(cluster, request, selection, page.room, found.token, 1)
            except (ApiError, ClusterError, TimeoutError) as problem:
                page.problems[cluster] = problem
                return None

    async def _gather(
        self, page: _Page, request: Request, selections: Mapping[str, Selection], tokens: Mapping[str, str]
    ) -> dict[str, MemberPage]:
        """Return the first pages of the clusters that answer, which together have about a page."""
        share = max(1, page.room // max(1, len(selections)))

        async def ask(cluster: str, selection: Selection) -> MemberPage | None:
            token = tokens.get(cluster, "")
            limit = page.room if token else share
            try:
                async with self._slots, asyncio.timeout(self._options.answer_s_max):
                    return await self._list_page(cluster, request, selection, limit, token, len(selections))
            except (ApiError, ClusterError, TimeoutError) as problem:
                page.problems[cluster] = problem
                return None

        pages = await asyncio.gather(*(ask(cluster, selection) for cluster, selection in selections.items()))
        for problem in page.problems.values():
            if isinstance(problem, Expired):
                raise problem  # of a continue token: as in Kubernetes, the client begins again
        return {cluster: found for cluster, found in zip(selections, pages, strict=True) if found is not None}

    async def _list_page(
        self, cluster: str, request: Request, selection: Selection, limit: int, token: str, members: int
    ) -> MemberPage:
        bytes_max = max(self._options.member_bytes_min, self._options.page_bytes_max // members)
        return await memberreads.list_page(
            self._pool, cluster, request.user, selection, limit=limit, token=token, bytes_max=bytes_max
        )

    def _selections(self, clusters: Iterable[str], namespace: str, options: ListOptions) -> dict[str, Selection]:
        found = {}
        for cluster in clusters:
            fields = to_member_fields(cluster, options.field_selector)
            if fields is not None:
                found[cluster] = Selection(self.resource, namespace, options.label_selector, fields)
        return found

    def _warnings(self, problems: Mapping[str, Exception]) -> Sequence[str]:
        return to_warnings(self.resource.plural, problems, self._options.answer_s_max)

    # -- watch

    def watch(
        self, request: Request, info: KindInfo, namespace: str, options: ListOptions
    ) -> AsyncGenerator[WatchBatch, None]:
        """Yield the changes of the host's objects and of those of members."""
        own = self._registry.watch if self._registry is not None else None
        return self._watches.watch(request.user, self.resource, info, namespace, options, own)
