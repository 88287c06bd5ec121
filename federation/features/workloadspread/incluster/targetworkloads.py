"""The workloads of one cluster as WorkloadSpreads see them: controllers of pods, targets, and their replicas.

Kinds of Kubernetes come from informers. Other kinds are looked up by discovery at their first use and followed from
then on, so that no list of kinds is needed. An object that an informer does not have yet is read from the API server.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import structlog

from federation.apimachinery.errors import ApiError, ClusterError, InvalidInput, NotFound
from federation.apimachinery.ownerreferences import controller_uids
from federation.apimachinery.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Object,
    Resource,
)
from federation.client.client import Client
from federation.features.workloadspread.rules.references import (
    EMPTY_WHITELIST,
    Whitelist,
    controller_owner,
    group_of,
    parse_whitelist,
)
from federation.features.workloadspread.rules.subsets import target_of
from federation.features.workloadspread.rules.totals import UNKNOWN, total_replicas
from federation.runtime.handlers import Handler
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers

BY_CONTROLLER = "controller"
"""The index of pods and ReplicaSets by the uid of their controller."""
_WATCHED = (DEPLOYMENTS, REPLICA_SETS, JOBS, STATEFUL_SETS)
_WHITELIST = ("kruise-system", "kruise-configuration")
_WHITELIST_KEY = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
_TIMEOUT_S = 2.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Followed:
    """A served kind, and whether it has a scale subresource."""

    resource: Resource
    has_scale: bool
    informer: Informer


class Workloads:
    """Reads the workloads of one cluster. `on_change` gets the changes of all workloads, from their informers."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._informers = informers
        self._followed: dict[tuple[str, str], _Followed] = {}
        self._handlers: list[Handler] = []
        self.whitelist: Whitelist = EMPTY_WHITELIST
        """The further kinds that the administrators of the cluster allow as targets."""
        for resource in _WATCHED:
            self._follow(resource, has_scale=resource is not JOBS)
        self._replica_sets = informers.for_resource(REPLICA_SETS)
        self._replica_sets.add_index(BY_CONTROLLER, controller_uids)
        informers.for_resource(CONFIGMAPS, namespace=_WHITELIST[0]).add_handler(self._on_config_map)

    def add_handler(self, handler: Handler) -> None:
        """Call the handler for every change of a workload, also of kinds that are followed later."""
        self._handlers.append(handler)
        for followed in self._followed.values():
            followed.informer.add_handler(handler)

    async def read(self, reference: Mapping[str, Any], namespace: str) -> Object | None:
        """Return the object that a reference names, None if its kind cannot be read.

        NotFound when the kind is served and the object does not exist; ApiError, ClusterError.
        """
        followed = await self._find(str(reference.get("apiVersion") or ""), str(reference.get("kind") or ""))
        if followed is None:
            return None
        name = str(reference.get("name") or "")
        cached = followed.informer.get(namespace, name)
        if cached is None or (reference.get("uid") or cached["metadata"]["uid"]) != cached["metadata"]["uid"]:
            return await self._client.get(followed.resource, name, namespace)
        return cached

    def cached_controller(self, obj: Object) -> Object | None:
        """Return the controller of a pod or a workload if its informer has it."""
        reference = controller_owner(obj)
        followed = self._followed.get((group_of(reference), reference["kind"])) if reference is not None else None
        if reference is None or followed is None:
            return None
        return followed.informer.get(obj["metadata"]["namespace"], str(reference.get("name") or ""))

    async def wait_synced(self) -> None:
        """Wait until the caches of Kubernetes' kinds are filled."""
        for resource in _WATCHED:
            await self._followed[resource.group, resource.kind].informer.wait_synced()

    async def find_target(self, spread: Object) -> Object | None:
        """Return the target of a WorkloadSpread, None when it does not exist or its kind is not served."""
        try:
            return await self.read(target_of(spread), spread["metadata"]["namespace"])
        except NotFound:
            return None

    async def count_replicas(self, spread: Object, workload: Object | None) -> int:
        """Return the replicas of a target, UNKNOWN if it shows none and 0 if there is no target; InvalidInput."""
        if workload is None:
            return 0
        target = target_of(spread)
        api_version, kind = str(target.get("apiVersion") or ""), str(target.get("kind") or "")
        path = self.whitelist.replicas_path(api_version, kind)
        total = total_replicas(spread, workload, replicas_path=path)
        if total == UNKNOWN and (scale := await self.read_scale(spread)) is not None:
            total = total_replicas(spread, workload, replicas_path=path, scale=scale)
        return total

    async def read_scale(self, spread: Object) -> Object | None:
        """Return the scale subresource of a target, None if its kind has none."""
        target, namespace = target_of(spread), spread["metadata"]["namespace"]
        followed = await self._find(str(target.get("apiVersion") or ""), str(target.get("kind") or ""))
        if followed is None or not followed.has_scale:
            return None
        path = followed.resource.path(namespace, str(target.get("name") or ""), "scale")
        return await self._get(path)

    def replica_sets_of(self, uid: str) -> list[Object]:
        """Return the ReplicaSets that the object with this uid controls."""
        return self._replica_sets.by_index(BY_CONTROLLER, uid)

    async def _find(self, api_version: str, kind: str) -> _Followed | None:
        """Return a kind in any served version of its group, None when it is not served."""
        group, _, version = api_version.rpartition("/")
        known = self._followed.get((group, kind))
        if known is not None:
            return known
        document = await self._get(f"/apis/{group}/{version}" if group else f"/api/{version}") or {}
        resources = [entry for entry in document.get("resources") or () if isinstance(entry, dict)]
        named = {str(entry.get("name")): entry for entry in resources if entry.get("kind") == kind}
        plural = next((name for name in named if "/" not in name), "")
        if not plural or not named[plural].get("namespaced"):
            return None
        has_scale = any(entry.get("name") == f"{plural}/scale" for entry in resources)
        return self._follow(Resource(group, version, kind, plural), has_scale=has_scale)

    def _follow(self, resource: Resource, *, has_scale: bool) -> _Followed:
        informer = self._informers.for_resource(resource)
        for handler in self._handlers:
            informer.add_handler(handler)
        followed = self._followed[resource.group, resource.kind] = _Followed(resource, has_scale, informer)
        return followed

    async def _get(self, path: str) -> Object | None:
        try:
            code, body = await self._client.raw("GET", path, timeout_s=_TIMEOUT_S)
            found = orjson.loads(body) if code == 200 else None
        except (ApiError, ClusterError, orjson.JSONDecodeError):
            return None
        return found if isinstance(found, dict) else None

    def _on_config_map(self, _old: Object | None, new: Object | None) -> None:
        if new is None or new["metadata"]["name"] != _WHITELIST[1]:
            return
        text = (new.get("data") or {}).get(_WHITELIST_KEY) or ""
        try:
            self.whitelist = parse_whitelist(text) if text else EMPTY_WHITELIST
        except InvalidInput as error:
            _log.warning("the whitelist of custom workloads is not used", error=str(error))
