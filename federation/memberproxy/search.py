"""`federatedclusters/*/proxy/PATH`: the objects of one kind in all members, as one list.

The path is that of a list in a cluster, of any kind that members serve. With a namespace the clusters are those where
the federation placed something of it, and the right to list the kind in that namespace of the host is enough; a tenant
sees no other cluster, not even in a warning. Without a namespace all clusters are asked, which needs the right on
`federatedclusters/proxy` of the name `*`. Every member authorizes the user besides. Nothing is stored: a cache would
have to know the rights of each user in each member.

Names, pages and warnings are those of merged lists (`mergedreader.py`).
"""

import asyncio
from typing import Final

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.deadline import Deadline
from federation.apimachinery.errors import BadRequest, Forbidden, NotFound
from federation.apimachinery.paths import ResourcePath, parse
from federation.apimachinery.resources import Resource
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.parameters import to_list_options
from federation.apiserver.http.requestinfo import to_verb
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.schema.model import ANYTHING
from federation.apiserver.semantics.strategies.base import Strategy
from federation.apiserver.verbs.requestoptions import ListOptions
from federation.client.pool import ClusterPool
from federation.memberproxy.memberreads import MemberPage, Selection
from federation.memberproxy.memberusers import to_member_user
from federation.memberproxy.mergedreader import MergedOptions, MergedReader
from federation.memberproxy.ownnamespaces import namespace_right
from federation.memberproxy.placedclusters import EveryCluster, Visibility

EVERY: Final = "*"
"""The name that stands for all clusters. No FederatedCluster can have it."""
_TIMEOUT_S: Final = 30.0


class Search:
    """Answers lists of any kind from all members of a pool."""

    def __init__(
        self, pool: ClusterPool, placed: Visibility | None, clock: Clock, options: MergedOptions | None = None
    ) -> None:
        self._pool = pool
        self._placed = placed
        self._everywhere = EveryCluster(pool)
        self._clock = clock
        self._options = options or MergedOptions()
        self._slots = asyncio.Semaphore(self._options.clusters_at_once_max)

    def narrower_right(self, request: Request, path: str) -> Attributes | None:
        """Return the right to list the kind in the namespace of the host, None for other requests."""
        inner = _listed(request, path)
        return None if inner is None or self._placed is None else namespace_right(inner, "list")

    async def answer(self, request: Request, path: str, timeout_s: float | None) -> None:
        """Answer an authorized request with one page; BadRequest for anything but a list."""
        inner = _listed(request, path)
        if inner is None:
            text = f"clusters/{EVERY}: only lists of objects are read from all clusters, such as"
            raise BadRequest(f"{text} {EVERY}/proxy/apis/apps/v1/namespaces/NAMESPACE/deployments")
        to_member_user(request.user)
        is_placed = bool(inner.namespace) and self._placed is not None
        visibility = self._placed if is_placed and self._placed is not None else self._everywhere
        reader = _KindReader(inner, self._pool, visibility, self._clock, self._options, self._slots)
        with Deadline(timeout_s or _TIMEOUT_S):
            page = await reader.search(request, inner.namespace, to_list_options(request.query))
        await request.respond_json(200, page)


class _KindReader(MergedReader):
    """Reads one kind for one request. Its name is not known before a member has answered."""

    def __init__(
        self,
        path: ResourcePath,
        pool: ClusterPool,
        visibility: Visibility,
        clock: Clock,
        options: MergedOptions,
        slots: asyncio.Semaphore,
    ) -> None:
        resource = Resource(path.group, path.version, "", path.plural, namespaced=bool(path.namespace))
        super().__init__(resource, None, pool, visibility, clock, options)
        self._slots = slots

    async def search(self, request: Request, namespace: str, options: ListOptions) -> dict[str, object]:
        """Return the page; the member's refusal if all of them refuse, NotFound if none serves the kind."""
        info = KindInfo(self.resource, "", "", Strategy(), lambda: ANYTHING, is_custom=True)
        page, problems = await self.read_page(request, info, namespace, options)
        refusals = [each for each in problems.values() if isinstance(each, Forbidden | NotFound)]
        if not page.items and problems and len(refusals) == len(problems) and not self.resource.kind:
            raise min(refusals, key=lambda each: isinstance(each, NotFound))
        # A cluster that does not serve the kind has none of its objects.
        unknown: dict[str, Exception] = {
            name: each for name, each in problems.items() if not isinstance(each, NotFound)
        }
        request.warnings.extend(self._warnings(unknown))
        metadata = {"resourceVersion": page.resource_version, "continue": page.continue_token}
        return {
            "apiVersion": self.resource.api_version if self.resource.kind else "v1",
            "kind": f"{self.resource.kind}List",
            "metadata": {key: value for key, value in metadata.items() if value},
            "items": [orjson.loads(each) for each in page.items],
        }

    async def _list_page(
        self, cluster: str, request: Request, selection: Selection, limit: int, token: str, members: int
    ) -> MemberPage:
        found = await super()._list_page(cluster, request, selection, limit, token, members)
        if found.kind and not self.resource.kind:
            self.resource = self.resource._replace(kind=found.kind)
        return found


def _listed(request: Request, path: str) -> ResourcePath | None:
    """Return the parts of a path if the request is a list, None for any other request."""
    inner = parse(path)
    if inner is None or inner.name or inner.subresource or inner.is_watch or request.method != "GET":
        return None
    return inner if to_verb(request, inner) == "list" else None
