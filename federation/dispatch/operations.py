"""One operation on one object in one member, from the first request to an outcome that can be published.

The protocol is docs/decisions/0003: members are written by server-side apply with one field manager, and an apply must
never adopt silently what was there before. An apply that pins an impossible resourceVersion creates an absent object
and is refused for an existing one, so creation costs one request and owns its fields from the start; a server that
refuses the pin also for absent objects is asked first (GET) from then on. Updates pin the uid. An outcome is a value:
nothing here raises for what a member does. `executor.py` says when these run and for how long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from federation.api import names
from federation.api import paths as dotpaths
from federation.api.resources import Object
from federation.base.errors import (
    AlreadyExists,
    ApiError,
    ClusterError,
    Conflict,
    FederationError,
    NotFound,
    RequestTimeout,
)
from federation.client.protocol import Client, PatchType
from federation.dispatch.adoption import AdoptionError, is_adoption_allowed
from federation.dispatch.ledger import MemberKey
from federation.dispatch.plan import is_managed_refused, is_other_derived_service
from federation.dispatch.status import ClusterStatus
from federation.planning.drift import is_subset
from federation.planning.memberobject import Rendered
from federation.planning.retention import RetentionError, retain_for_apply, retain_replicas

_NO_REVISION = "1"
"""No object ever has it: the first write of a store gets a higher one, or the object was not written since."""
_ATTEMPTS_MAX = 4


@dataclass(frozen=True, slots=True)
class Write:
    """What one member should hold. `live` is its present object as far as known; `federated` are the annotations of
    the federated object; `replicas_path` is set when the member's own replicas are to be kept.
    """

    key: MemberKey
    desired: Rendered
    live: Object | None = None
    federated: Mapping[str, str] = field(default_factory=dict)
    replicas_path: dotpaths.Path = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an operation ended. `object` is what the member answered; `is_unanswered`: it gave no answer at all."""

    status: ClusterStatus
    object: Object | None = None
    message: str = ""
    is_unanswered: bool = False
    is_complete: bool = True
    """Whether the answer holds everything that was sent; see Ledger.is_accepted."""
    retry_after_s: float = 0.0

    @property
    def is_ok(self) -> bool:
        """Whether the operation did what it should."""
        return self.status in (ClusterStatus.OK, ClusterStatus.WAITING_FOR_REMOVAL)


class _RefusedError(FederationError):
    """The object must not be written; carries the outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def wanted_for(write: Write, live: Mapping[str, Any]) -> Object:
    """Return the applied configuration for an object that exists: without what the member keeps; RetentionError."""
    wanted = retain_for_apply(write.desired.object, live)
    if write.replicas_path:
        wanted = retain_replicas(wanted, live, write.replicas_path)
    if (live["metadata"].get("annotations") or {}).get(names.ADOPTED) == "true":
        # It is ours since adoption, and whatever an apply leaves out is removed.
        wanted = _annotated(wanted, names.ADOPTED, "true")
    return wanted


def _annotated(obj: Object, key: str, value: str) -> Object:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), key: value}}}


class MemberWriter:
    """Carries out operations through members' clients; remembers which servers cannot create with a pinned revision."""

    def __init__(self) -> None:
        self._asks_first: set[str] = set()

    def forget_cluster(self, cluster: str) -> None:
        """Learn the server's abilities anew: it may be another one."""
        self._asks_first.discard(cluster)

    async def ensure(self, client: Client, write: Write) -> Outcome:
        """Create or update the object so that it holds everything that is desired."""
        is_new = write.live is None
        try:
            return await self._ensure(client, write)
        except _RefusedError as refused:
            return refused.outcome
        except RetentionError as error:
            return Outcome(ClusterStatus.FIELD_RETENTION_FAILED, message=str(error))
        except RequestTimeout as error:
            status = ClusterStatus.CREATION_TIMED_OUT if is_new else ClusterStatus.UPDATE_TIMED_OUT
            return Outcome(status, message=str(error), is_unanswered=True)
        except (ApiError, ClusterError) as error:
            status = ClusterStatus.CREATION_FAILED if is_new else ClusterStatus.UPDATE_FAILED
            return _failed(status, error)

    async def _ensure(self, client: Client, write: Write) -> Outcome:
        live = write.live
        for _ in range(_ATTEMPTS_MAX):
            if live is None:
                found = await self._create(client, write)
                if isinstance(found, Outcome):
                    return found
                live = found
            outcome = await self._update(client, write, live)
            if outcome is not None:
                return outcome
            live = await self._look(client, write.key)
        raise Conflict(f"{write.key.name} changed {_ATTEMPTS_MAX} times while it was written")

    async def _create(self, client: Client, write: Write) -> Outcome | Object:
        """Create the object, or return the one that is in the way."""
        key = write.key
        if key.cluster not in self._asks_first:
            try:
                return _done(write.desired.object, await self._apply(client, key, write.desired.object, _NO_REVISION))
            except (Conflict, NotFound):
                # It exists, or its namespace does not, or this server cannot create with a pinned revision: look.
                pass
        found = await self._look(client, key)
        if found is not None:
            return found
        result = _done(write.desired.object, await self._apply(client, key, write.desired.object))
        self._asks_first.add(key.cluster)
        return result

    async def _update(self, client: Client, write: Write, live: Object) -> Outcome | None:
        """Apply over an object that exists; None when it is no longer what we looked at."""
        adopted = _check_ownership(write, live)
        wanted = wanted_for(write, live)
        if adopted:
            wanted = _annotated(wanted, names.ADOPTED, "true")
        metadata = live["metadata"]
        # Values copied from the live object (replicas) must not overwrite what was changed since it was read.
        revision = metadata.get("resourceVersion", "") if write.replicas_path else ""
        try:
            return _done(wanted, await self._apply(client, write.key, wanted, revision, uid=metadata.get("uid", "")))
        except (Conflict, NotFound):
            return None

    async def _look(self, client: Client, key: MemberKey) -> Object | None:
        try:
            return await client.get(key.resource, key.name, key.namespace)
        except NotFound:
            return None
        except ApiError as error:
            raise _RefusedError(_failed(ClusterStatus.RETRIEVAL_FAILED, error)) from error

    async def _apply(self, client: Client, key: MemberKey, obj: Object, revision: str = "", *, uid: str = "") -> Object:
        pins = {name: value for name, value in (("resourceVersion", revision), ("uid", uid)) if value}
        body = {**obj, "metadata": {**obj["metadata"], **pins}} if pins else obj
        return await client.patch(
            key.resource,
            key.name,
            orjson.dumps(body),
            patch_type=PatchType.APPLY,
            namespace=key.namespace,
            field_manager=names.FIELD_MANAGER,
            force=True,
        )

    async def remove(self, client: Client, key: MemberKey, uid: str) -> Outcome:
        """Ask for the deletion of exactly this object; its dependents go in the background."""
        try:
            await client.delete(key.resource, key.name, key.namespace, propagation_policy="Background", uid=uid)
        except (NotFound, Conflict):
            # Gone, or another object by now: the cache will say so and the next reconcile decides anew.
            pass
        except RequestTimeout as error:
            return Outcome(ClusterStatus.DELETION_TIMED_OUT, message=str(error), is_unanswered=True)
        except (ApiError, ClusterError) as error:
            return _failed(ClusterStatus.DELETION_FAILED, error)
        return Outcome(ClusterStatus.WAITING_FOR_REMOVAL)

    async def release(self, client: Client, key: MemberKey, uid: str) -> Outcome:
        """Leave the object to the member: without our label and bookkeeping, otherwise as it is."""
        patch = {
            "metadata": {
                "uid": uid,
                "labels": {names.MANAGED_LABEL: None},
                "annotations": {names.TEMPLATE_HASH: None, names.SOURCE_GENERATION: None},
            }
        }
        try:
            await client.patch(
                key.resource,
                key.name,
                patch,
                patch_type=PatchType.MERGE,
                namespace=key.namespace,
                field_manager=names.FIELD_MANAGER,
            )
        except (NotFound, Conflict):
            pass
        except RequestTimeout as error:
            return Outcome(ClusterStatus.LABEL_REMOVAL_TIMED_OUT, message=str(error), is_unanswered=True)
        except (ApiError, ClusterError) as error:
            return _failed(ClusterStatus.LABEL_REMOVAL_FAILED, error)
        return Outcome(ClusterStatus.WAITING_FOR_REMOVAL)

    async def confirm(self, client: Client, key: MemberKey) -> Outcome:
        """Ask the member itself whether it has no managed copy any more: OK when so, else it waits for removal."""
        try:
            live = await client.get(key.resource, key.name, key.namespace)
        except NotFound:
            return Outcome(ClusterStatus.OK)
        except (ApiError, ClusterError) as error:
            return _failed(ClusterStatus.RETRIEVAL_FAILED, error)
        is_managed = (live["metadata"].get("labels") or {}).get(names.MANAGED_LABEL) == "true"
        return Outcome(ClusterStatus.WAITING_FOR_REMOVAL if is_managed else ClusterStatus.OK, live)


def _done(sent: Object, answer: Object) -> Outcome:
    return Outcome(ClusterStatus.OK, answer, is_complete=is_subset(sent, answer))


def _check_ownership(write: Write, live: Object) -> bool:
    """Return whether this write adopts the object (False: it is ours already); refuse when it must not be touched."""
    if is_managed_refused(live):
        message = f'the object in the cluster carries the label {names.MANAGED_LABEL}="false"'
        raise _RefusedError(Outcome(ClusterStatus.MANAGED_LABEL_FALSE, live, message))
    is_ours = (live["metadata"].get("labels") or {}).get(names.MANAGED_LABEL) == "true"
    if is_ours and not is_other_derived_service(write.federated, live):
        return False
    try:
        is_allowed = is_adoption_allowed(write.federated, write.key.cluster)
    except AdoptionError as error:
        raise _RefusedError(Outcome(ClusterStatus.ALREADY_EXISTS, live, str(error))) from error
    if not is_allowed:
        how = (
            f"annotate {names.CONFLICT_RESOLUTION}=adopt, and {names.CLUSTERS_TO_ADOPT} with its name, to take it over"
        )
        message = f"the object was in the cluster before; {how}"
        raise _RefusedError(Outcome(ClusterStatus.ALREADY_EXISTS, live, message))
    return True


def _failed(status: ClusterStatus, error: ApiError | ClusterError) -> Outcome:
    if isinstance(error, AlreadyExists):
        status = ClusterStatus.ALREADY_EXISTS
    retry_after = error.details.get("retryAfterSeconds") if isinstance(error, ApiError) else None
    return Outcome(
        status,
        message=str(error),
        is_unanswered=isinstance(error, ClusterError),
        retry_after_s=float(retry_after or 0),
    )
