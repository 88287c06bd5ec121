"""The steps of joining and leaving for one FederatedCluster (docs/reference/clusters.md).

A join is retried until it succeeds, its time is over, or the member has the claim of another federation; the last two
are final. Leaving waits until every other finalizer is gone, so that other controllers still reach the member.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError, Forbidden, Unauthorized
from federation.apimachinery.finalizers import has_finalizer, with_finalizers, without_finalizers
from federation.apimachinery.listening import Silence
from federation.apimachinery.resources import Object
from federation.client.clustersecret import has_given_credentials
from federation.client.pool import ClusterPool
from federation.controllers.cluster import memberaccount, memberjoin
from federation.controllers.cluster import names as clusternames
from federation.controllers.cluster.statuswriter import ConditionWanted, Publisher, health_conditions
from federation.controllers.cluster.tokenrenewal import TokenRenewal, patch_secret
from federation.delivery.members.memberships import forget_earlier
from federation.planning.clusters.probes import judge
from federation.runtime.controller import DONE, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host

_FINAL_REASONS = frozenset({clusternames.REASON_CLUSTER_UNJOINABLE, names.REASON_JOIN_TIMEOUT_EXCEEDED})
_OURS = (names.CLUSTER_FINALIZER, names.CASCADING_DELETE_FINALIZER)
_RETRY_S_MIN = 0.5
_RETRY_S_MAX = 30.0
_NOT_YET_RETRY_S = 0.5
_ATTEMPT_S_MAX = 120.0
"""Seconds from one failed join to the next that count as such, the pause included: in more the process stood still."""
_SECRET_S = 5.0
"""How long a new cluster may lack its Secret before that is published: `fedctl join` writes it a moment later."""
_FORCED_CLEAN_UP_S = 5.0
"""How long a removal by force tries to clean the member up."""


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """Limits of joining."""

    timeout_s: float = 600.0
    """How long one process may fail to join a member before the join ends for good."""


class _FailingJoin(NamedTuple):
    """A join that has failed: the cluster's uid, and the time in which it could have succeeded."""

    uid: str
    silence: Silence


class Reconciler:
    """Joins and removes members. `start` and `stop` begin and end the monitoring of a joined member.

    `types` returns the federated types, which determine the rights of the account in a member.
    """

    def __init__(
        self,
        host: Host,
        secret: Callable[[str], Object | None],
        publisher: Publisher,
        pool: ClusterPool,
        renewal: TokenRenewal,
        options: JoinOptions,
        *,
        types: Callable[[], Iterable[FederatedType]],
        start: Callable[[str], None],
        stop: Callable[[str], None],
    ) -> None:
        self._client = host.client
        self._objects = host.objects
        self._secret = secret
        self._publisher = publisher
        self._pool = pool
        self._recorder = host.recorder
        self._renewal = renewal
        self._clock = host.clock
        self._options = options
        self._types = types
        self._start = start
        self._stop = stop
        self._failures: dict[str, int] = {}
        self._failing: dict[str, _FailingJoin] = {}
        """By cluster whose join fails."""

    async def reconcile(self, name: str) -> Result:
        """Join one cluster, keep its connection up to date, or remove it."""
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
        return await self._join(name, cluster, str((joined or {}).get("message", "")), is_new=joined is None)

    async def _follow(self, name: str, cluster: Object) -> Result:
        """Keep a joined member connected and monitored; publish it as not ready if its credentials are unusable."""
        self._connect(cluster)
        if name in self._pool.clusters:
            self._start(name)
            return await self._renewal.renew_if_due(name, cluster)
        unusable = judge(name, "", ConfigurationError(self._pool.problem(name)))
        await self._publisher.publish(name, health_conditions(unusable))
        return Result(requeue_after_s=_RETRY_S_MAX)

    def _forget(self, name: str) -> None:
        self._failures.pop(name, None)
        self._failing.pop(name, None)
        self._stop(name)
        self._pool.remove(name)

    async def _ensure_finalizers(self, cluster: Object) -> Object | None:
        """Add both finalizers in one write: sync would add its own as soon as the cluster is joined."""
        if all(has_finalizer(cluster, name) for name in _OURS):
            return cluster
        return await self._publisher.set_finalizers(cluster, with_finalizers(cluster, *_OURS))

    def _connect(self, cluster: Object) -> None:
        """Update the client; with unusable data the old connection stays, and an Event names the problem."""
        try:
            self._pool.update(cluster, self._secret_of(cluster))
        except ConfigurationError as problem:
            self._recorder.event(cluster, WARNING, clusternames.EVENT_JOIN_CLUSTER_ERROR, str(problem))

    def _secret_of(self, cluster: Object) -> Object | None:
        return self._secret(str(((cluster.get("spec") or {}).get("secretRef") or {}).get("name", "")))

    async def _join(self, name: str, cluster: Object, failure: str, *, is_new: bool) -> Result:
        """Try to join. `failure` is the published reason of an earlier attempt, `is_new` that there was none."""
        if self._is_over(name, cluster):
            message = f"joining was given up after {self._options.timeout_s:g} s: {failure}"
            await self._refuse(
                name,
                cluster,
                names.REASON_JOIN_TIMEOUT_EXCEEDED,
                clusternames.EVENT_JOIN_CLUSTER_TIMEOUT,
                message,
            )
            return DONE
        lacks_secret = self._secret_of(cluster) is None and _uses_account(cluster)
        if lacks_secret and is_new and (left_s := self._new_for_s(cluster)) > 0:
            return Result(requeue_after_s=left_s)  # the event of the Secret comes sooner
        try:
            if lacks_secret:
                raise memberaccount.NotYetError("the Secret that spec.secretRef names does not exist yet")
            self._pool.update(cluster, self._secret_of(cluster))
            uid, has_new_secret = await self._exchange(name, cluster)
            if not has_new_secret:
                await forget_earlier(self._objects, name)
        except memberjoin.UnjoinableError as error:
            event = clusternames.EVENT_CLUSTER_UNJOINABLE
            await self._refuse(name, cluster, clusternames.REASON_CLUSTER_UNJOINABLE, event, str(error))
            return DONE
        except (memberaccount.NotYetError, ConfigurationError, ApiError, ClusterError) as error:
            return await self._fail(name, cluster, error)
        if has_new_secret:
            return Result(requeue_after_s=_NOT_YET_RETRY_S)  # the event of the Secret comes sooner
        condition = ConditionWanted(
            names.CLUSTER_JOINED, "True", clusternames.REASON_CLUSTER_JOINED, "cluster is joined"
        )
        recorded = {"clusterUid": uid} if uid else {}
        credential = self._renewal.credential(name, cluster)
        await self._publisher.publish(name, [condition], {"joinPerformed": True, **credential, **recorded})
        self._failures.pop(name, None)
        self._failing.pop(name, None)
        self._recorder.event(cluster, NORMAL, clusternames.EVENT_JOIN_CLUSTER_SUCCESS, "cluster is joined")
        current = self._publisher.cluster(name)
        if current is not None:
            self._connect(current)
        self._start(name)
        return DONE

    def _new_for_s(self, cluster: Object) -> float:
        """Return for how many more seconds the cluster counts as new."""
        age_s = (self._clock.now() - from_rfc3339(cluster["metadata"]["creationTimestamp"])).total_seconds()
        return _SECRET_S - age_s if age_s >= 0 else 0.0

    def _is_over(self, name: str, cluster: Object) -> bool:
        """Return whether this process has failed for so long that the join ends for good.

        No stored time decides: an earlier process may have had a wrong clock, and time during which no process ran
        is not time without an answer. So a restart begins to count from zero (docs/decisions/0203).
        """
        failing = self._failing.get(name)
        if failing is None or failing.uid != cluster["metadata"]["uid"]:
            return False
        return failing.silence.counted_s > self._options.timeout_s

    async def _exchange(self, name: str, cluster: Object) -> tuple[str, bool]:
        """Claim the member and return its uid, and whether given credentials were replaced by our own account.

        With the account the join starts again, so that a cluster is joined only if its account works.
        """
        member = self._pool.client(name)
        host = await memberjoin.find_host(self._client)
        uid = await memberjoin.identify(member, host)
        namespace = await memberjoin.claim(member, cluster["metadata"]["uid"], host, self._client)
        if not _uses_account(cluster) or not self._has_given_credentials(cluster):
            return uid, False
        await memberaccount.ensure_account(member, namespace, self._types())
        token = await memberaccount.obtain_token(member, names.MEMBER_SERVICE_ACCOUNT, self._renewal.lifetime_s)
        # The given credentials are not needed any more: a reader of the Secret must not get more than our rights.
        given: dict[str, str | None] = dict.fromkeys(names.SECRET_BOOTSTRAP_KEYS)
        await patch_secret(self._client, cluster, {names.SECRET_SERVICE_ACCOUNT_TOKEN: token, **given})
        return uid, True

    def _has_given_credentials(self, cluster: Object) -> bool:
        secret = self._secret_of(cluster)
        return secret is not None and has_given_credentials(secret)

    async def _fail(self, name: str, cluster: Object, error: Exception) -> Result:
        """Publish why the join failed, and retry later."""
        count = self._failures.get(name, 0)
        self._failures[name] = count + 1
        failing, uid = self._failing.get(name), str(cluster["metadata"]["uid"])
        if failing is None or failing.uid != uid:
            failing = self._failing[name] = _FailingJoin(uid, Silence())
        failing.silence.look(self._clock.monotonic(), _ATTEMPT_S_MAX)
        condition = ConditionWanted(names.CLUSTER_JOINED, "False", clusternames.REASON_TOKEN_NOT_OBTAINED, str(error))
        await self._publisher.publish(name, [condition])
        if isinstance(error, memberaccount.NotYetError):
            return Result(requeue_after_s=_NOT_YET_RETRY_S)
        self._recorder.event(cluster, WARNING, clusternames.EVENT_JOIN_CLUSTER_ERROR, str(error))
        return Result(requeue_after_s=min(_RETRY_S_MIN * 2**count, _RETRY_S_MAX))

    async def _refuse(self, name: str, cluster: Object, reason: str, event: str, message: str) -> None:
        """End the join for good."""
        condition = ConditionWanted(names.CLUSTER_JOINED, "False", reason, message)
        await self._publisher.publish(name, [condition], {"joinPerformed": False})
        self._recorder.event(cluster, WARNING, event, message)
        self._forget(name)

    async def _leave(self, name: str, cluster: Object) -> Result:
        """Clean the member up once no other finalizer is left, then remove our own."""
        if not has_finalizer(cluster, names.CLUSTER_FINALIZER):
            return DONE
        is_joined = (cluster.get("status") or {}).get("joinPerformed")
        if without_finalizers(cluster, names.CLUSTER_FINALIZER):
            # Other controllers still need the member: after a restart it is connected here.
            return await self._follow(name, cluster) if is_joined else DONE
        if is_joined:
            self._connect(cluster)
            if name in self._pool.clusters:
                self._start(name)  # its conditions say why it cannot leave, also after a restart
        annotations = cluster["metadata"].get("annotations") or {}
        reason = annotations.get(names.FORCED_REMOVAL)
        if reason is not None and names.LEFTOVERS_RECORDED not in annotations:
            return DONE  # sync records what the member may hold; its patch requeues the cluster
        try:
            if not is_joined:
                await self._undo_join(name, cluster)
            elif reason is None:
                await self._clean_up(name, cluster)
            else:
                await self._try_clean_up(name, cluster)
        except (ApiError, ClusterError, ConfigurationError, TimeoutError) as error:
            if reason is None:
                return self._blocked(name, cluster, error)
            text = f"removed by force ({reason}); the member was not cleaned up: {error}"
            self._recorder.event(cluster, WARNING, clusternames.EVENT_REMOVED_BY_FORCE, text)
        current = self._publisher.cluster(name) or cluster
        others = without_finalizers(current, names.CLUSTER_FINALIZER)
        await self._publisher.set_finalizers(current, others)
        self._forget(name)
        return DONE

    async def _clean_up(self, name: str, cluster: Object) -> None:
        """Remove our namespace and account from a joined member, and the token from the Secret."""
        uid = cluster["metadata"]["uid"]
        self._connect(cluster)
        member = self._pool.client(name)
        try:
            namespace = await memberjoin.find_claim(member, uid)
        except (Unauthorized, Forbidden):
            if _is_leaving(cluster):
                namespace = None  # an earlier attempt removed the account, and with it everything else
            elif _uses_account(cluster) and self._has_given_credentials(cluster):
                self._pool.update(cluster, self._secret_of(cluster), bootstrap=True)
                namespace = await memberjoin.find_claim(member, uid)
            else:
                raise
        if namespace is not None:
            text = "the member is being cleaned up"
            leaving = ConditionWanted(names.CLUSTER_JOINED, "False", clusternames.REASON_CLUSTER_LEAVING, text)
            await self._publisher.publish(name, [leaving])
            await memberjoin.release(member, namespace)
        if _uses_account(cluster):
            await patch_secret(self._client, cluster, {names.SECRET_SERVICE_ACCOUNT_TOKEN: None})

    async def _try_clean_up(self, name: str, cluster: Object) -> None:
        """Clean the member up if it answers; TimeoutError when that takes too long."""
        cleaning = asyncio.ensure_future(self._clean_up(name, cluster))
        patience = asyncio.ensure_future(self._clock.sleep(_FORCED_CLEAN_UP_S))
        try:
            await asyncio.wait((cleaning, patience), return_when=asyncio.FIRST_COMPLETED)
            if not cleaning.done():
                raise TimeoutError(f"it does not answer within {_FORCED_CLEAN_UP_S:g} s")
            cleaning.result()
        finally:
            patience.cancel()
            cleaning.cancel()

    async def _undo_join(self, name: str, cluster: Object) -> None:
        """Remove what a failed join left in the member, if the member answers."""
        secret = self._secret_of(cluster)
        if secret is None:
            return
        with contextlib.suppress(ApiError, ClusterError, ConfigurationError):
            self._pool.update(cluster, secret)
            await memberjoin.unclaim(self._pool.client(name), cluster["metadata"]["uid"])

    def _blocked(self, name: str, cluster: Object, error: Exception) -> Result:
        count = self._failures.get(name, 0)
        self._failures[name] = count + 1
        event = (
            clusternames.EVENT_TERMINATING_CLUSTER_BLOCKED if count else clusternames.EVENT_TERMINATING_CLUSTER_FAILED
        )
        remedy = ""
        if isinstance(error, Unauthorized | Forbidden | ConfigurationError):
            remedy = f"; renew the credentials with: fedctl join --update-credentials {name} --kubeconfig FILE"
        text = f"the member cannot be cleaned up, so it is kept: {error}{remedy}"
        self._recorder.event(cluster, WARNING, event, text)
        return Result(requeue_after_s=min(_RETRY_S_MIN * 2**count, _RETRY_S_MAX))


def _uses_account(cluster: Object) -> bool:
    return bool((cluster.get("spec") or {}).get("useServiceAccount"))


def _is_leaving(cluster: Object) -> bool:
    """Return whether an earlier attempt to clean the member up reached the removal of our account."""
    joined = conditions.find((cluster.get("status") or {}).get("conditions"), names.CLUSTER_JOINED)
    return joined is not None and joined.get("reason") == clusternames.REASON_CLUSTER_LEAVING
