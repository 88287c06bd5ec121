"""The steps of joining and leaving for one FederatedCluster (docs/reference/clusters.md).

Joining repeats until it succeeds, until its time is over, or until the member says that it belongs to somebody else;
the last two are final. Leaving waits until every other finalizer is gone, so that other controllers still reach the
member.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.clock import Clock, from_rfc3339
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError, Forbidden, NotFound, Unauthorized
from federation.apimachinery.resources import SECRETS, Object
from federation.client.client import Client, PatchType
from federation.client.pool import ClusterPool
from federation.controllers.cluster import memberjoin
from federation.controllers.cluster.statuswriter import ConditionWanted, Publisher, of_verdict
from federation.planning.clusters import health
from federation.runtime.controller import DONE, Result
from federation.runtime.events import NORMAL, WARNING, Recorder

_FINAL_REASONS = frozenset({names.REASON_CLUSTER_UNJOINABLE, names.REASON_JOIN_TIMEOUT_EXCEEDED})
_OURS = (names.FEDERATED_CLUSTER_FINALIZER, names.CASCADING_DELETE_FINALIZER)
_RETRY_S_MIN = 0.5
_RETRY_S_MAX = 30.0
_NOT_YET_RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """Limits of joining."""

    timeout_s: float = 600.0
    """How long joining may fail before it is given up for good."""


class Reconciler:
    """Joins and removes members. `start` and `stop` follow a member that is joined, and end that."""

    def __init__(
        self,
        client: Client,
        secret: Callable[[str], Object | None],
        publisher: Publisher,
        pool: ClusterPool,
        recorder: Recorder,
        clock: Clock,
        options: JoinOptions,
        *,
        start: Callable[[str], None],
        stop: Callable[[str], None],
    ) -> None:
        self._client = client
        self._secret = secret
        self._publisher = publisher
        self._pool = pool
        self._recorder = recorder
        self._clock = clock
        self._options = options
        self._start = start
        self._stop = stop
        self._failures: dict[str, int] = {}

    async def reconcile(self, name: str) -> Result:
        """Bring one cluster in, keep its connection up to date, or let it go."""
        cluster = self._publisher.cluster(name)
        if cluster is None:
            self._forget(name)
            return DONE
        if cluster["metadata"].get("deletionTimestamp"):
            return await self._leave(name, cluster)
        cluster = await self._ensure_finalizers(cluster)
        if cluster is None:
            return DONE
        joined = conditions.find((cluster.get("status") or {}).get("conditions"), names.CLUSTER_JOINED)
        if joined is not None and joined.get("status") == "True":
            return await self._follow(name, cluster)
        if joined is not None and joined.get("reason") in _FINAL_REASONS:
            return DONE
        return await self._join(name, cluster, joined)

    async def _follow(self, name: str, cluster: Object) -> Result:
        """Keep a joined member connected and watched; one without usable credentials cannot be reached, and says so."""
        self._connect(cluster)
        if name in self._pool.clusters:
            self._start(name)
            return DONE
        await self._publisher.publish(name, of_verdict(health.unreachable(self._pool.problem(name))))
        return Result(requeue_after_s=_RETRY_S_MAX)

    def _forget(self, name: str) -> None:
        self._failures.pop(name, None)
        self._stop(name)
        self._pool.remove(name)

    async def _ensure_finalizers(self, cluster: Object) -> Object | None:
        """Put both finalizers on in one write: sync's is due anyway as soon as the cluster is joined."""
        held = list(cluster["metadata"].get("finalizers") or ())
        missing = [name for name in _OURS if name not in held]
        if not missing:
            return cluster
        return await self._publisher.set_finalizers(cluster, [*held, *missing])

    def _connect(self, cluster: Object, *, bootstrap: bool | None = None) -> None:
        """Bring the client up to date; unusable data of a joined cluster is told, and the old connection stays."""
        try:
            self._pool.update(cluster, self._secret_of(cluster), bootstrap=bootstrap)
        except ConfigurationError as problem:
            if bootstrap:
                raise
            self._recorder.event(cluster, WARNING, names.EVENT_JOIN_CLUSTER_ERROR, str(problem))

    def _secret_of(self, cluster: Object) -> Object | None:
        return self._secret(str(((cluster.get("spec") or {}).get("secretRef") or {}).get("name", "")))

    async def _join(self, name: str, cluster: Object, joined: Any) -> Result:
        if joined is not None and self._is_over(joined, self._clock.now()):
            message = f"joining was given up after {self._options.timeout_s:g} s: {joined.get('message', '')}"
            await self._refuse(
                name, cluster, names.REASON_JOIN_TIMEOUT_EXCEEDED, names.EVENT_JOIN_CLUSTER_TIMEOUT, message
            )
            return DONE
        try:
            self._connect(cluster, bootstrap=True)
            uid = await self._exchange(name, cluster)
        except memberjoin.UnjoinableError as error:
            event = names.EVENT_CLUSTER_UNJOINABLE
            await self._refuse(name, cluster, names.REASON_CLUSTER_UNJOINABLE, event, str(error))
            return DONE
        except (memberjoin.NotYetError, ConfigurationError, ApiError, ClusterError) as error:
            return await self._fail(name, cluster, error)
        condition = ConditionWanted(names.CLUSTER_JOINED, "True", names.REASON_CLUSTER_JOINED, "cluster is joined")
        recorded = {"clusterUid": uid} if uid else {}
        await self._publisher.publish(name, [condition], {"joinPerformed": True, **recorded})
        self._failures.pop(name, None)
        self._recorder.event(cluster, NORMAL, names.EVENT_JOIN_CLUSTER_SUCCESS, "cluster is joined")
        current = self._publisher.cluster(name)
        if current is not None:
            self._connect(current)
        self._start(name)
        return DONE

    def _is_over(self, joined: dict[str, Any], now: datetime) -> bool:
        try:
            since = from_rfc3339(str(joined.get("lastTransitionTime", "")))
        except ValueError:
            return False
        return (now - since).total_seconds() > self._options.timeout_s

    async def _exchange(self, name: str, cluster: Object) -> str:
        """Claim the member, trade the given credentials for an account of our own if asked for, and return its uid."""
        member = self._pool.client(name)
        host = await memberjoin.find_host(self._client)
        uid = await memberjoin.identify(member, host)
        namespace = await memberjoin.claim(member, cluster["metadata"]["uid"], host)
        if not (cluster.get("spec") or {}).get("useServiceAccount"):
            return uid
        token = await memberjoin.ensure_service_account(member, namespace)
        if not token:
            raise memberjoin.NotYetError("the member has not issued the service account's token yet")
        await self._patch_secret(cluster, {names.SECRET_SERVICE_ACCOUNT_TOKEN: token})
        return uid

    async def _patch_secret(self, cluster: Object, data: dict[str, str | None]) -> None:
        await self._client.patch(
            SECRETS,
            cluster["spec"]["secretRef"]["name"],
            {"data": data},
            patch_type=PatchType.MERGE,
            namespace=names.SYSTEM_NAMESPACE,
            field_manager=names.FIELD_MANAGER,
        )

    async def _fail(self, name: str, cluster: Object, error: Exception) -> Result:
        """Publish why joining does not succeed, and try again later."""
        count = self._failures.get(name, 0)
        self._failures[name] = count + 1
        condition = ConditionWanted(names.CLUSTER_JOINED, "False", names.REASON_TOKEN_NOT_OBTAINED, str(error))
        await self._publisher.publish(name, [condition])
        if isinstance(error, memberjoin.NotYetError):
            return Result(requeue_after_s=_NOT_YET_RETRY_S)
        self._recorder.event(cluster, WARNING, names.EVENT_JOIN_CLUSTER_ERROR, str(error))
        return Result(requeue_after_s=min(_RETRY_S_MIN * 2**count, _RETRY_S_MAX))

    async def _refuse(self, name: str, cluster: Object, reason: str, event: str, message: str) -> None:
        """Give joining up for good."""
        condition = ConditionWanted(names.CLUSTER_JOINED, "False", reason, message)
        await self._publisher.publish(name, [condition], {"joinPerformed": False})
        self._recorder.event(cluster, WARNING, event, message)
        self._forget(name)

    async def _leave(self, name: str, cluster: Object) -> Result:
        """Clean the member up once nobody else needs it, then let the FederatedCluster go."""
        finalizers = list(cluster["metadata"].get("finalizers") or ())
        if names.FEDERATED_CLUSTER_FINALIZER not in finalizers:
            return DONE
        if set(finalizers) != {names.FEDERATED_CLUSTER_FINALIZER}:
            # Others still work on the member, so it has to be reachable: after a restart it is connected here.
            return await self._follow(name, cluster) if (cluster.get("status") or {}).get("joinPerformed") else DONE
        if (cluster.get("status") or {}).get("joinPerformed"):
            try:
                await self._unclaim(name, cluster)
                await self._drop_token(cluster)
            except (ApiError, ClusterError, ConfigurationError) as error:
                return self._blocked(name, cluster, error)
        await self._publisher.set_finalizers(cluster, [])
        self._forget(name)
        return DONE

    async def _unclaim(self, name: str, cluster: Object) -> None:
        """Clean the member up, with the credentials that joined it when an earlier try has removed our account."""
        uid = cluster["metadata"]["uid"]
        self._connect(cluster)
        try:
            await memberjoin.unclaim(self._pool.client(name), uid)
        except (Unauthorized, Forbidden):
            if not (cluster.get("spec") or {}).get("useServiceAccount"):
                raise
            self._connect(cluster, bootstrap=True)
            await memberjoin.unclaim(self._pool.client(name), uid)

    async def _drop_token(self, cluster: Object) -> None:
        if (cluster.get("spec") or {}).get("useServiceAccount"):
            try:
                await self._patch_secret(cluster, {names.SECRET_SERVICE_ACCOUNT_TOKEN: None})
            except NotFound:
                return

    def _blocked(self, name: str, cluster: Object, error: Exception) -> Result:
        count = self._failures.get(name, 0)
        self._failures[name] = count + 1
        event = names.EVENT_TERMINATING_CLUSTER_BLOCKED if count else names.EVENT_TERMINATING_CLUSTER_FAILED
        text = f"the member cannot be cleaned up, so it is kept: {error}"
        self._recorder.event(cluster, WARNING, event, text)
        return Result(requeue_after_s=min(_RETRY_S_MIN * 2**count, _RETRY_S_MAX))
