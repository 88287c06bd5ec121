"""What happens to a cluster's objects when the cluster leaves (spec §10.9).

Every joined FederatedCluster carries a finalizer of ours. When the cluster is deleted the finalizer goes at once, and
the member keeps its objects, unless the annotation cascading-delete asks for their deletion: then every managed object
is deleted or released first, as its federated object's orphan annotation says. An object whose federated object is gone
already is deleted; KubeAdmiral waits for it for ever.
"""

from collections.abc import Callable

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS, Object
from federation.base.errors import ApiError, ClusterError, NotFound
from federation.client.protocol import Client, PatchType
from federation.controllers.sync.clusters import facts_of
from federation.controllers.sync.dispatching import federated_key
from federation.dispatch.ledger import MemberKey
from federation.dispatch.operations import MemberWriter, Outcome
from federation.dispatch.plan import Removal, decide_removal
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import WARNING, Recorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.members import Members

_RECHECK_S = 5.0
_PAGE_SIZE = 500
_MANAGED = f"{names.MANAGED_LABEL}=true"


class Cascade:
    """Keeps the cascading-delete finalizer of clusters and empties those that leave."""

    def __init__(
        self,
        client: Client,
        cluster: Callable[[str], Object | None],
        federated: Callable[[Key], Object | None],
        types: FederatedTypes,
        members: Members,
        recorder: Recorder,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._federated = federated
        self._types = types
        self._members = members
        self._recorder = recorder
        self._writer = MemberWriter()

    async def reconcile(self, name: str) -> Result:
        """Bring one cluster's finalizer in line with its state."""
        cluster = self._cluster(name)
        if cluster is None:
            return DONE
        facts = facts_of(cluster)
        if not facts.terminating:
            if facts.joined and not facts.has_finalizer:
                await self._set_finalizer(cluster, is_present=True)
            return DONE
        if not facts.has_finalizer:
            return DONE
        if facts.cascading_delete and facts.joined:
            if not facts.ready:
                text = "objects in the cluster cannot be deleted while it is not ready"
                self._recorder.event(cluster, WARNING, names.EVENT_WAIT_FOR_CASCADING_DELETE, text)
                return Result(requeue_after_s=_RECHECK_S)
            if not await self._empty(cluster, name):
                return Result(requeue_after_s=_RECHECK_S)
        await self._set_finalizer(cluster, is_present=False)
        return DONE

    async def _set_finalizer(self, cluster: Object, *, is_present: bool) -> None:
        metadata = cluster["metadata"]
        others = [name for name in metadata.get("finalizers") or () if name != names.CASCADING_DELETE_FINALIZER]
        finalizers = [*others, names.CASCADING_DELETE_FINALIZER] if is_present else others
        patch = {"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}}
        try:
            await self._client.patch(
                FEDERATED_CLUSTERS,
                metadata["name"],
                patch,
                patch_type=PatchType.MERGE,
                field_manager=names.FIELD_MANAGER,
            )
        except NotFound:
            return

    async def _empty(self, cluster: Object, name: str) -> bool:
        """Delete or release every managed object of the cluster; True when none is left."""
        remaining, failures = 0, []
        try:
            member = self._members.client(name)
        except NotFound:
            return False
        for type_ in self._types.all():
            try:
                left, failed = await self._empty_of(member, name, type_)
            except NotFound:
                continue
            except (ApiError, ClusterError) as error:
                failures.append(f"{type_.resource.plural}: {error}")
                continue
            remaining += left
            failures += failed
        if failures:
            text = f"{len(failures)} failures, the first: {failures[0]}"
            self._recorder.event(cluster, WARNING, names.EVENT_WAIT_FOR_CASCADING_DELETE_ERROR, text)
        elif remaining:
            text = f"waiting for {remaining} objects to be deleted"
            self._recorder.event(cluster, WARNING, names.EVENT_WAIT_FOR_CASCADING_DELETE, text)
        return not remaining and not failures

    async def _empty_of(self, member: Client, cluster: str, type_: FederatedType) -> tuple[int, list[str]]:
        """Treat one type's objects; return how many there were, and what went wrong."""
        count, failures, token = 0, [], ""
        while True:
            page = await member.list(type_.resource, label_selector=_MANAGED, limit=_PAGE_SIZE, continue_token=token)
            for obj in page.items:
                count += 1
                outcome = await self._remove(member, cluster, type_, obj)
                if outcome is not None and not outcome.is_ok:
                    failures.append(f"{type_.resource.plural} {obj['metadata']['name']}: {outcome.message}")
            token = page.continue_token
            if not token:
                return count, failures

    async def _remove(self, member: Client, cluster: str, type_: FederatedType, obj: Object) -> Outcome | None:
        metadata = obj["metadata"]
        federated = self._federated(federated_key(type_, obj))
        ours = (federated["metadata"].get("annotations") or {}) if federated is not None else {}
        removal = decide_removal(ours, metadata.get("annotations") or {})
        key = MemberKey(cluster, type_.resource, metadata.get("namespace", ""), metadata["name"])
        if removal is Removal.ORPHAN:
            return await self._writer.release(member, key, metadata["uid"])
        if metadata.get("deletionTimestamp"):
            return None
        return await self._writer.remove(member, key, metadata["uid"])
