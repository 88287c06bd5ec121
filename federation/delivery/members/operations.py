"""One operation on one object in one member, from the first request to its outcome.

docs/decisions/0003 describes the protocol: members are written by server-side apply with one field manager, and an
apply must not adopt an existing object silently. An apply with an impossible resourceVersion creates an absent object
and fails with Conflict for an existing one, so a creation costs one request. Some servers refuse it for absent objects
too; for those, `MemberWriter` always sends a GET first. Updates carry the uid as precondition. Failures of a
member become outcomes, never exceptions. `executor.py` runs the operations.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import orjson

from federation.api import names
from federation.apimachinery.errors import (
    AlreadyExists,
    ApiError,
    ClusterError,
    Conflict,
    FederationError,
    NotFound,
    RequestWithdrawn,
    is_kind_missing,
    is_not_applicable,
)
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client, PatchType
from federation.client.servedversion import in_served_version
from federation.delivery.members.keptstate import KeptState
from federation.delivery.rules.adoption import AdoptionError, is_adoption_allowed, takes_only_equal
from federation.delivery.rules.content import Write, annotated, describe_drifted, to_applied_configuration
from federation.delivery.rules.corrections import Correction
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.names import ORPHANED
from federation.delivery.rules.orphans import is_marked_at_release, is_orphan, needs_replacement
from federation.delivery.rules.plan import has_lost_label, is_managed, is_management_disabled, is_name_collision
from federation.delivery.rules.status import ClusterStatus, describe_kind, describe_unserved
from federation.planning.drift.fields import Field, author_of, drifted_fields, fields_to_remove
from federation.planning.drift.unwritten import may_be_default, without
from federation.planning.leftovers.evidence import Evidence, objection
from federation.planning.rendering.drift import is_subset
from federation.planning.rendering.retention import RetentionError

_NO_REVISION = "1"
"""A resourceVersion that no object has: the first write of a store gets a higher one."""
_ATTEMPTS_MAX = 4
_REPLACEMENT_S = 1.0
"""Delay until an orphan that is being replaced is looked at again."""
_CONFLICTS_MAX = 2
"""Conflicts of an absent object after which a server is known to refuse a pinned resourceVersion."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of an operation. `object` is the member's answer.

    `is_unanswered` means that there was no answer; the caller then derives the status from the operation.
    """

    status: ClusterStatus
    object: Object | None = None
    message: str = ""
    is_unanswered: bool = False
    is_complete: bool = True
    """Whether the answer contains everything that was sent; see `rules/memberrecord.py`."""
    retry_after_s: float = 0.0
    is_withdrawn: bool = False
    """Whether a deletion was not sent, because it was not wanted any more when it could be."""
    correction: Correction | None = None
    """The fields that an apply corrected in the object, None when it corrected nothing."""

    @property
    def is_ok(self) -> bool:
        """Whether the operation succeeded."""
        return self.status in (ClusterStatus.OK, ClusterStatus.WAITING_FOR_REMOVAL)


class _RefusedError(FederationError):
    """Ends an operation whose object must not be written; carries the outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


FindUnwritten = Callable[[MemberKey, Object, Sequence[Field]], Awaitable[Sequence[Field]]]
"""Returns those of the fields that nobody wrote on the host."""
_OUR_ANNOTATIONS = (names.TEMPLATE_HASH, names.SOURCE_GENERATION, names.TEMPLATE_REVISION)
FindEvidence = Callable[[], Evidence | None]
"""Returns the evidence for a deletion, None if it is not wanted any more."""
_DEFAULTS_MAX = 50
"""Fields of one object that are looked at."""


class MemberWriter:
    """Runs operations through members' clients; records which servers cannot create with a pinned resourceVersion."""

    def __init__(self, kept: KeptState, find_unwritten: FindUnwritten | None = None) -> None:
        self._find_unwritten = find_unwritten
        self._gets_first: set[str] = kept.by_cluster(set())

    async def ensure(self, client: Client, write: Write) -> Outcome:
        """Create the object or update it to the desired state."""
        try:
            return await self._ensure(client, write)
        except _RefusedError as refused:
            return refused.outcome
        except RetentionError as error:
            return Outcome(ClusterStatus.FIELD_RETENTION_FAILED, message=str(error))
        except (ApiError, ClusterError) as error:
            is_new = write.live is None
            status = ClusterStatus.CREATION_FAILED if is_new else ClusterStatus.UPDATE_FAILED
            return _failed(status, error, describe_kind(write.key.resource))

    async def _ensure(self, client: Client, write: Write) -> Outcome:
        live = write.live
        if write.is_correction or (write.stops_at_drift and live is not None):
            # The cache has no owners of fields. Our apply removes the record of who changed them.
            live = await self._get(client, write.key)
        for _ in range(_ATTEMPTS_MAX):
            if live is None:
                found = await self._create(client, write)
                if isinstance(found, Outcome):
                    return found
                live = found
            if is_orphan(write.key.resource, live):
                live = await self._take_back(client, write, live)
            outcome = await self._update(client, write, live)
            if outcome is not None:
                return outcome
            live = await self._get(client, write.key)
        raise Conflict(f"{write.key.name} changed {_ATTEMPTS_MAX} times while it was written")

    async def _create(self, client: Client, write: Write) -> Outcome | Object:
        """Create the object, or return the existing one."""
        key, desired = write.key, write.desired.object
        if key.cluster not in self._gets_first:
            for _ in range(_CONFLICTS_MAX):
                try:
                    return _done(desired, await self._apply(client, key, desired, _NO_REVISION))
                except NotFound:  # the namespace does not exist
                    break
                except Conflict:  # the object exists, or the server is busy, or it cannot create with a pinned revision
                    if (found := await self._get(client, key)) is not None:
                        return found
            else:
                result = _done(desired, await self._apply(client, key, desired))
                self._gets_first.add(key.cluster)
                return result
        found = await self._get(client, key)
        return _done(desired, await self._apply(client, key, desired)) if found is None else found

    async def _take_back(self, client: Client, write: Write, live: Object) -> Object:
        """Manage an orphan again, or delete it without its pods where it cannot become the desired one."""
        key, metadata = write.key, live["metadata"]
        if not metadata.get("deletionTimestamp") and not needs_replacement(write.desired.object, live):
            pins = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
            ours = {"labels": {names.MANAGED_LABEL: "true"}, "annotations": {ORPHANED: None}}
            patch = {"metadata": {**pins, **ours}}
            return await client.patch(
                key.resource, key.name, patch, namespace=key.namespace, field_manager=names.FIELD_MANAGER
            )
        if not metadata.get("deletionTimestamp"):
            await client.delete(key.resource, key.name, key.namespace, propagation_policy="Orphan", uid=metadata["uid"])
        message = "the one that was orphaned differs in fields that cannot change, so it is replaced; its pods stay"
        raise _RefusedError(Outcome(ClusterStatus.PENDING_CREATE, message=message, retry_after_s=_REPLACEMENT_S))

    async def _update(self, client: Client, write: Write, live: Object) -> Outcome | None:
        """Apply over an existing object; None when it changed since it was read."""
        adopted = _check_ownership(write, live)
        wanted = to_applied_configuration(write, live)
        if adopted:
            _check_takeover(write, wanted, live)
        elif write.stops_at_drift:
            _check_drift(wanted, live)
        if adopted:
            wanted = annotated(wanted, names.ADOPTED, "true")
        sent = await self._without_defaults(write.key, wanted, live)
        if sent is not wanted and write.is_correction and is_subset(sent, live):
            return Outcome(ClusterStatus.OK, live, is_complete=False)
        metadata = live["metadata"]
        # Retained values come from the live object: they must not overwrite a newer change. Nor may a process that was
        # paused at this point, and wakes when another one leads, undo what that one wrote.
        revision, uid = metadata.get("resourceVersion", ""), metadata.get("uid", "")
        try:
            answer = await self._apply(client, write.key, sent, revision, uid=uid)
        except (Conflict, NotFound):
            return None
        # An apply that leaves the object as it was has corrected nothing.
        is_changed = answer["metadata"].get("resourceVersion") != metadata.get("resourceVersion")
        is_correction = write.is_correction or has_lost_label(live, write.known_uid)
        return _done(wanted, answer, _correction(sent, live) if is_correction and is_changed else None)

    async def _without_defaults(self, key: MemberKey, wanted: Object, live: Object) -> Object:
        """Return the configuration without defaults of the host that the member has otherwise: nobody wrote them."""
        differing = drifted_fields(wanted, live, fields_max=_DEFAULTS_MAX)
        defaults = [field for field in differing if may_be_default(wanted, field)]
        if not defaults or self._find_unwritten is None:
            return wanted
        for field in await self._find_unwritten(key, wanted, defaults):
            wanted = without(wanted, field.steps)
        return wanted

    async def _get(self, client: Client, key: MemberKey) -> Object | None:
        try:
            return await client.get(key.resource, key.name, key.namespace)
        except NotFound:
            return None
        except ApiError as error:
            raise _RefusedError(_failed(ClusterStatus.RETRIEVAL_FAILED, error)) from error

    async def _apply(self, client: Client, key: MemberKey, obj: Object, revision: str = "", *, uid: str = "") -> Object:
        pins = {name: value for name, value in (("resourceVersion", revision), ("uid", uid)) if value}
        body = {**obj, "metadata": {**obj["metadata"], **pins}} if pins else obj
        try:
            return await client.patch(
                key.resource,
                key.name,
                orjson.dumps(body),
                patch_type=PatchType.APPLY,
                namespace=key.namespace,
                field_manager=names.FIELD_MANAGER,
                force=True,
            )
        except ApiError as error:
            if not is_not_applicable(error):
                raise
        return await self._write_otherwise(client, key, obj, pins)

    async def _write_otherwise(self, client: Client, key: MemberKey, obj: Object, pins: Object) -> Object:
        """Write what cannot be applied: create it, or patch what an apply would change; Conflict if it exists."""
        if "uid" not in pins:
            try:
                return await client.create(key.resource, obj, field_manager=names.FIELD_MANAGER)
            except AlreadyExists as error:
                raise Conflict(str(error)) from error
        live = await client.get(key.resource, key.name, key.namespace)  # the cache has no owners of fields
        patch = apply_merge_patch(fields_to_remove(live, obj), obj)
        patch["metadata"] |= pins
        return await client.patch(
            key.resource, key.name, patch, namespace=key.namespace, field_manager=names.FIELD_MANAGER
        )

    async def remove(
        self,
        client: Client,
        key: MemberKey,
        uid: str,
        *,
        is_foreground: bool = False,
        find_evidence: FindEvidence,
    ) -> Outcome:
        """Delete exactly this object; its dependents are deleted in the background, or before it.

        Every deletion of a member object passes here, and none without evidence is sent. A member may be slow: until
        the request leaves, what it follows from may end. `find_evidence` is asked again then (docs/decisions/0204).
        """
        policy = "Foreground" if is_foreground else "Background"

        def is_wanted() -> bool:
            evidence = find_evidence()
            return evidence is not None and not objection(evidence)

        evidence = find_evidence()
        if evidence is not None and (why := objection(evidence)):
            return Outcome(ClusterStatus.DELETION_FAILED, message=f"it is not deleted: {why}")

        async def delete(resource: Resource) -> None:
            await client.delete(
                resource, key.name, key.namespace, propagation_policy=policy, uid=uid, is_wanted=is_wanted
            )

        try:
            await in_served_version(client, key.resource, delete)
        except RequestWithdrawn:
            return Outcome(ClusterStatus.WAITING_FOR_REMOVAL, is_withdrawn=True)
        except NotFound:
            pass  # The watch reports it, and the next reconcile decides.
        except Conflict as conflict:
            return await self._check_conflict(client, key, uid, ClusterStatus.DELETION_FAILED, conflict)
        except (ApiError, ClusterError) as error:
            return _failed(ClusterStatus.DELETION_FAILED, error)
        return Outcome(ClusterStatus.WAITING_FOR_REMOVAL)

    async def release(self, client: Client, key: MemberKey, uid: str, *, is_for_good: bool = False) -> Outcome:
        """Remove our label and annotations from the object and leave it in the member.

        `is_for_good` leaves no mark by which a new object of the name takes it back: its cluster leaves the federation.
        """
        annotations: Object = dict.fromkeys(_OUR_ANNOTATIONS)
        if is_for_good:
            annotations[names.ADOPTED] = None
        elif is_marked_at_release(key.resource):
            annotations[ORPHANED] = "true"
        patch = {"metadata": {"uid": uid, "labels": {names.MANAGED_LABEL: None}, "annotations": annotations}}

        async def send(resource: Resource) -> None:
            await client.patch(resource, key.name, patch, namespace=key.namespace, field_manager=names.FIELD_MANAGER)

        try:
            await in_served_version(client, key.resource, send)
        except NotFound:
            pass
        except Conflict as conflict:
            return await self._check_conflict(client, key, uid, ClusterStatus.LABEL_REMOVAL_FAILED, conflict)
        except (ApiError, ClusterError) as error:
            return _failed(ClusterStatus.LABEL_REMOVAL_FAILED, error)
        return Outcome(ClusterStatus.WAITING_FOR_REMOVAL)

    async def _check_conflict(
        self, client: Client, key: MemberKey, uid: str, failure: ClusterStatus, conflict: Conflict
    ) -> Outcome:
        """Return the outcome of a deletion or release that ended in a conflict.

        Another object of the name causes one, and then nothing is left to do. A webhook or a busy server causes one
        too: the object is still there, and the operation must be repeated.
        """
        outcome = await self.confirm(client, key)
        metadata = (outcome.object or {}).get("metadata", {})
        if outcome.is_unanswered or outcome.status is ClusterStatus.RETRIEVAL_FAILED:
            return outcome
        if outcome.status is ClusterStatus.OK or metadata.get("uid") != uid or metadata.get("deletionTimestamp"):
            return Outcome(ClusterStatus.WAITING_FOR_REMOVAL)
        return _failed(failure, conflict)

    async def confirm(self, client: Client, key: MemberKey) -> Outcome:
        """Read the object from the member: OK when it is gone or not managed, else WaitingForRemoval."""
        try:
            live = await in_served_version(
                client, key.resource, lambda resource: client.get(resource, key.name, key.namespace)
            )
        except NotFound:
            return Outcome(ClusterStatus.OK)
        except (ApiError, ClusterError) as error:
            return _failed(ClusterStatus.RETRIEVAL_FAILED, error)
        return Outcome(ClusterStatus.WAITING_FOR_REMOVAL if is_managed(live) else ClusterStatus.OK, live)


def _done(sent: Object, answer: Object, correction: Correction | None = None) -> Outcome:
    return Outcome(ClusterStatus.OK, answer, is_complete=is_subset(sent, answer), correction=correction)


def _correction(wanted: Object, live: Object) -> Correction | None:
    fields = drifted_fields(wanted, live)
    return Correction(fields, author_of(fields, live)) if fields else None


def _check_ownership(write: Write, live: Object) -> bool:
    """Return True when this write adopts the object, False when we manage it already; else raise the refusal."""
    if is_management_disabled(live):
        message = f'the object in the cluster carries the label {names.MANAGED_LABEL}="false"'
        raise _RefusedError(Outcome(ClusterStatus.MANAGED_LABEL_FALSE, live, message))
    is_ours = is_managed(live) or has_lost_label(live, write.known_uid)
    if is_ours and not is_name_collision(write.federated, live):
        return False
    try:
        is_allowed = is_adoption_allowed(write.federated, write.key.cluster)
    except AdoptionError as error:
        raise _RefusedError(Outcome(ClusterStatus.ALREADY_EXISTS, live, str(error))) from error
    if not is_allowed:
        message = f"the object was in the cluster before; take it over with {_adoption_command(write.key)}"
        raise _RefusedError(Outcome(ClusterStatus.ALREADY_EXISTS, live, message))
    return True


def _check_takeover(write: Write, wanted: Object, live: Object) -> None:
    """Raise the refusal of an object that may be taken over only if nothing of it changes, and differs."""
    if not takes_only_equal(write.federated):
        return
    content = {name: value for name, value in wanted.items() if name != "metadata"}
    if is_subset(content, live):
        return
    fields = ", ".join(each.name for each in drifted_fields(content, live))
    message = f"the object was in the cluster before and differs, so it is not taken over: {fields}"
    raise _RefusedError(Outcome(ClusterStatus.ALREADY_EXISTS, live, message))


def _check_drift(wanted: Object, live: Object) -> None:
    """Raise the refusal of a write over fields that somebody else has changed since our last write."""
    fields = [each for each in drifted_fields(wanted, live) if author_of((each,), live) is not None]
    if fields:
        raise _RefusedError(Outcome(ClusterStatus.DRIFTED, live, describe_drifted(fields, author_of(fields, live))))


def _adoption_command(key: MemberKey) -> str:
    """Return the command that adopts the object; it sets the annotations conflict-resolution and clusters-to-adopt."""
    namespace = f" -n {key.namespace}" if key.namespace else ""
    return f"fedctl adopt {key.resource.kind.lower()}/{key.name}{namespace} --cluster {key.cluster}"


def unanswered(message: str) -> Outcome:
    """Return the outcome of an operation that got no answer. Callers replace its status by the operation's own."""
    return Outcome(ClusterStatus.UPDATE_TIMED_OUT, message=message, is_unanswered=True)


def _failed(status: ClusterStatus, error: ApiError | ClusterError, kind: str = "") -> Outcome:
    """Return the outcome of an error; for a write, `kind` is the kind of the object."""
    if isinstance(error, ClusterError):
        return unanswered(str(error))
    if isinstance(error, AlreadyExists):
        status = ClusterStatus.ALREADY_EXISTS
    if is_kind_missing(error) and kind:
        return Outcome(ClusterStatus.KIND_NOT_SERVED, message=describe_unserved(kind))
    return Outcome(status, message=str(error), retry_after_s=float(error.details.get("retryAfterSeconds") or 0))
