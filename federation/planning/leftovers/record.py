"""The Leftover as a value: its name, its manifest, and the next step for the object that it stands for. Pure.

The name follows from the cluster and the object, so that several writers of one record write the same object.
`delivery/host/tombstones.py` stores records, `controllers/leftovers` acts on them.
Decision: docs/decisions/0239-a-record-deletes-in-its-membership.md
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import blake2b
from typing import Any, assert_never

from federation.api import names
from federation.api.resources import LEFTOVERS
from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.resources import Object, Resource
from federation.planning.leftovers.evidence import Evidence, Membership, Word

_CLUSTER_LENGTH_MAX = 200
_MESSAGE_CHARACTERS_MAX = 1024


class Action(StrEnum):
    """`spec.action`: what happens to the object once its member answers."""

    DELETE = "Delete"
    RELEASE = "Release"
    RELEASE_ADOPTED = "ReleaseAdopted"
    KEEP = "Keep"


class Reason(StrEnum):
    """`spec.reason`."""

    SOURCE_DELETED = "SourceDeleted"
    """The source was deleted while the member did not answer."""
    CLUSTER_REMOVED = "ClusterRemoved"
    """The member left the federation by force, with the object in it."""
    REVOKED = "Revoked"
    """A Secret that was deleted on the host; the cluster is empty, it stands for all of them."""
    STRAY = "Stray"
    """A sweep found the object, and the host does not know it."""
    KEPT = "Kept"
    """A user kept the object when its cluster left the federation. It has no label of ours."""
    HELD = "Held"
    """A sweep would remove the object, with more others at a time than the guard allows."""


class Step(StrEnum):
    """The next step for a record, given the live object."""

    DELETE = "delete"
    RELEASE = "release"
    FORGET = "forget"
    """The object is gone or not ours any more: the record has served."""
    REPORT = "report"
    """The object is another one than the recorded: nothing is done to it, and the record becomes a report."""
    KEEP = "keep"
    """The object is released, and was kept by a user: the record says so from now on."""
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Record:
    """One object in one member. `cluster_uid` and `uid` are "" when they are not known."""

    cluster: str
    resource: Resource
    namespace: str
    name: str
    action: Action
    reason: Reason
    cluster_uid: str = ""
    uid: str = ""
    message: str = ""
    at: str = field(default="", compare=False)
    """When the deletion was asked for. "" for a record without one, and for an answer that was not seen yet."""
    revision: str = field(default="", compare=False)
    """The resourceVersion of the Leftover that was read, "" for a record that was not."""

    @property
    def record_name(self) -> str:
        """The name of the Leftover."""
        return record_name(self.cluster, self.resource, self.namespace, self.name)

    @property
    def is_pending(self) -> bool:
        """Whether the object will be removed or released, so that nothing may be written over it before."""
        return self.action is not Action.KEEP

    @property
    def is_kept(self) -> bool:
        """Whether a user kept the object when its cluster left: only an answer of an administrator deletes it."""
        return self.reason in (Reason.KEPT, Reason.CLUSTER_REMOVED) and self.action is not Action.DELETE

    def is_in(self, cluster_uid: str) -> bool:
        """Return whether a cluster with this uid may hold the object; an unknown uid does not rule it out."""
        return not self.cluster_uid or not cluster_uid or self.cluster_uid == cluster_uid


def record_name(cluster: str, resource: Resource, namespace: str, name: str) -> str:
    """Return the name of the Leftover of an object; the API version does not matter."""
    identity = f"{cluster}\0{resource.group}\0{resource.kind}\0{namespace}\0{name}"
    digest = blake2b(identity.encode(), digest_size=10).hexdigest()
    return f"{cluster[:_CLUSTER_LENGTH_MAX].rstrip('.-') or 'every'}-{digest}"


def to_manifest(record: Record) -> Object:
    """Return the Leftover of a record."""
    resource = record.resource
    spec: Object = {
        "action": record.action.value,
        "cluster": record.cluster,
        "name": record.name,
        "reason": record.reason.value,
        "resource": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
            "pluralName": resource.plural,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
        },
    }
    optional = {
        "clusterUid": record.cluster_uid,
        "message": record.message[:_MESSAGE_CHARACTERS_MAX],
        "namespace": record.namespace,
        "recordedAt": record.at,
        "uid": record.uid,
    }
    return {
        "apiVersion": LEFTOVERS.api_version,
        "kind": LEFTOVERS.kind,
        "metadata": {"name": record.record_name},
        "spec": spec | {field: value for field, value in optional.items() if value},
    }


def from_manifest(leftover: Mapping[str, Any]) -> Record:
    """Return the record of a Leftover; ValueError, KeyError or TypeError for a malformed one, which nothing acts on."""
    spec, created = leftover["spec"], str(leftover["metadata"].get("creationTimestamp") or "")
    source, reason = spec["resource"], Reason(spec["reason"])
    is_word = reason in (Reason.SOURCE_DELETED, Reason.REVOKED)
    record = Record(
        cluster=str(spec["cluster"]),
        resource=Resource(
            str(source.get("group") or ""),
            str(source["version"]),
            str(source["kind"]),
            str(source["pluralName"]),
            source["scope"] == "Namespaced",
        ),
        namespace=str(spec.get("namespace") or ""),
        name=str(spec["name"]),
        action=Action(spec["action"]),
        reason=reason,
        cluster_uid=str(spec.get("clusterUid") or ""),
        uid=str(spec.get("uid") or ""),
        message=str(spec.get("message") or ""),
        # Earlier versions stored no time: the deletion of a source was recorded when the Leftover was created.
        at=str(spec.get("recordedAt") or (created if is_word else "")),
        revision=str(leftover["metadata"].get("resourceVersion", "")),
    )
    if leftover["metadata"]["name"] != record.record_name:
        raise ValueError(f"metadata.name: the record of this object is named {record.record_name}")
    return record


def next_step(record: Record, live: Mapping[str, Any] | None) -> Step:
    """Return what to do about the object; `live` is the member's answer, None when the object is gone."""
    if live is None:
        return Step.FORGET
    metadata = live["metadata"]
    if not is_managed(live):
        return _next_step_of_kept(record, str(metadata.get("uid", "")))
    if _is_another(record, metadata):
        return Step.NOTHING if record.action is Action.KEEP else Step.REPORT
    match record.action:
        case Action.DELETE:
            return Step.DELETE
        case Action.RELEASE:
            return Step.RELEASE
        case Action.RELEASE_ADOPTED:
            is_adopted = (metadata.get("annotations") or {}).get(names.ADOPTED) == "true"
            return Step.RELEASE if is_adopted else Step.DELETE
        case Action.KEEP:
            return Step.NOTHING
        case other:
            assert_never(other)


def _is_another(record: Record, metadata: Mapping[str, Any]) -> bool:
    """Return whether the object is not the recorded one: it has another uid, or was created after its deletion."""
    if record.uid:
        return bool(metadata.get("uid") != record.uid)
    created, deleted = parse_rfc3339(str(metadata.get("creationTimestamp") or "")), parse_rfc3339(record.at)
    return created is not None and deleted is not None and created > deleted


def _next_step_of_kept(record: Record, uid: str) -> Step:
    """Return the step for an object without our label: nothing is done to it, unless a user asks to delete this one."""
    if record.uid and record.uid != uid:
        return Step.FORGET
    if record.is_kept and record.action is not Action.KEEP:
        return Step.KEEP
    if record.reason is not Reason.KEPT or not record.uid:
        return Step.FORGET
    return Step.DELETE if record.action is Action.DELETE else Step.NOTHING


def evidence_of_record(record: Record, membership: Membership | None) -> Evidence:
    """Return what the record is as evidence for a deletion."""
    return Evidence(Word.RECORD, membership, at=record.at, cluster_uid=record.cluster_uid)


def without_deletion(record: Record, uid: str) -> Record:
    """Return the record of an object whose deletion is of an earlier membership: its cluster left with it."""
    reason = Reason.KEPT if record.reason is Reason.KEPT else Reason.CLUSTER_REMOVED
    message = f"its deletion was asked for at {record.at or 'an unknown time'}, before the cluster joined"
    return replace(record, action=Action.KEEP, reason=reason, uid=uid, message=message, at="")


def as_report(record: Record, uid: str) -> Record:
    """Return the report of an object that is another one than the recorded."""
    return replace(record, action=Action.KEEP, reason=Reason.STRAY, uid=uid, at="")


def is_managed(live: Mapping[str, Any]) -> bool:
    """Return whether the member object carries our label."""
    labels = live["metadata"].get("labels") or {}
    return bool(labels.get(names.MANAGED_LABEL) == "true")
