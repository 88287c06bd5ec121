"""The desired content of one member object, compared with the present one: rendered, stepped, retained. Pure.

`compute_content` is for the delivery, `fedctl diff` and `fedctl why` alike. A cluster that has left the placement and
keeps replicas for a while should be as it is, with that number of replicas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from federation.api import names
from federation.api.federatedtype import DriftMode, FederatedType, RetentionRule
from federation.apimachinery import dotpaths
from federation.apimachinery.memory import share
from federation.apimachinery.resources import Object
from federation.delivery.rules.adoption import adoption_terms
from federation.delivery.rules.corrections import is_correction
from federation.delivery.rules.memberrecord import MemberKey, MemberRecord
from federation.delivery.rules.plan import is_converged, is_management_disabled
from federation.delivery.rules.status import ClusterStatus
from federation.planning.drift.fields import Author, Field
from federation.planning.rendering.drift import is_subset
from federation.planning.rendering.memberobject import Rendered, Renderer, RenderError
from federation.planning.rendering.retention import (
    RetentionError,
    is_replicas_retained,
    retain_for_apply,
    retain_replicas_for_apply,
)
from federation.planning.steps.memberstate import replicas_of, to_departing, to_held, to_stepped
from federation.planning.steps.steps import Step
from federation.planning.waves.rolloutpart import rollout_part

_MISSED_CHANGES = "it has finished there, so changes of its spec are not delivered; create it again to run it again"


@dataclass(frozen=True, slots=True)
class Subject:
    """The federated object that a reconcile delivers: the same in all of its clusters."""

    federated: Object
    type_: FederatedType
    renderer: Renderer

    @property
    def annotations(self) -> Mapping[str, str]:
        """The federated object's annotations."""
        return self.federated["metadata"].get("annotations") or {}

    @property
    def is_retained(self) -> bool:
        """Whether the user leaves the replicas to the members."""
        return is_replicas_retained(self.federated)

    @property
    def drift_mode(self) -> DriftMode:
        """The treatment of fields that somebody in a member has changed: as the object says, or else its kind."""
        return to_drift_mode(self.annotations.get(names.DRIFT)) or self.type_.drift

    def member_key(self, cluster: str) -> MemberKey:
        """Return the key of the member object in a cluster."""
        return member_key(self.federated, self.type_, cluster)


def to_drift_mode(text: str | None) -> DriftMode | None:
    """Return the mode of the annotation, None without one or for an unknown value."""
    return next((mode for mode in DriftMode if mode.value == text), None)


def member_key(federated: Object, type_: FederatedType, cluster: str) -> MemberKey:
    """Return the key of a federated object's member object in a cluster."""
    name = str(federated["spec"]["template"]["metadata"]["name"])
    namespace = federated["metadata"].get("namespace", "") if type_.resource.namespaced else ""
    return MemberKey(cluster, type_.resource, share(namespace), share(name))


@dataclass(frozen=True, slots=True)
class Write:
    """The desired state of one member object.

    `live` is the member's object as last seen, `federated` the federated object's annotations. `replicas_path` is set
    when the member's own replicas are retained. `is_correction` means that the same content was applied before, so that
    somebody else has changed the object since. `known_uid` is that of an object that has left the cache and may still
    be there without our label, "" without one.
    """

    key: MemberKey
    desired: Rendered
    live: Object | None = None
    federated: Mapping[str, str] = field(default_factory=dict)
    replicas_path: dotpaths.Path = ()
    is_correction: bool = False
    known_uid: str = ""
    retention: tuple[RetentionRule, ...] = ()
    """The rules of its kind about fields whose value in the member counts."""
    stops_at_drift: bool = False
    """Whether nothing may be written over fields that somebody else has changed."""

    @property
    def attempt(self) -> str:
        """The content, and what else decides if it can be written: a failure counts until one of them changes.

        Users remove causes of failures by annotations: they adopt an object, or give up what was changed in a member.
        """
        terms = (adoption_terms(self.federated), self.stops_at_drift, self.retention, self.live is None)
        return f"{self.desired.hash} {terms}"


@dataclass(frozen=True, slots=True)
class Content:
    """The desired content of a member object, and its difference from the present one.

    `problem` is the status and message of content that does not exist: only another template or other overrides help.
    """

    write: Write | None = None
    problem: tuple[ClusterStatus, str] | None = None
    is_as_wanted: bool = False
    """Whether nothing needs to be written."""
    is_correction: bool = False
    """Whether this content was applied before, so that somebody in the member has changed the object."""

    @property
    def hash(self) -> str:
        """The hash of the content, "" without any."""
        return "" if self.write is None else self.write.desired.hash


def compute_content(
    subject: Subject,
    key: MemberKey,
    live: Object | None,
    record: MemberRecord,
    *,
    step: Step | None = None,
    is_departing: bool = False,
    is_stepped: bool = False,
) -> Content:
    """Return what the member object should be now.

    `live` is the member object, None without one. `step` limits a divided workload, and `is_stepped` says that some
    cluster of it has a step.
    """
    resource = subject.type_.resource
    if is_departing and live is not None and step is not None:
        desired = to_departing(live, resource, step.replicas)
        is_as_wanted = replicas_of(live) == step.replicas and not _is_uncertain(record, desired, is_stepped=is_stepped)
        return Content(Write(key, desired, live, subject.annotations), is_as_wanted=is_as_wanted)
    try:
        desired = subject.renderer.render(key.cluster)
        if step is not None:
            desired = _to_stepped(subject.type_, desired, live, step)
        is_retained = subject.is_retained or bool(record.scaler_name)
        paths = subject.type_.paths.replicas_spec if is_retained else ()
        known_uid = record.lost_uid if live is None else ""
        write = Write(
            key,
            desired,
            live,
            subject.annotations,
            paths,
            known_uid=known_uid,
            retention=subject.type_.retention,
            stops_at_drift=subject.drift_mode is DriftMode.STOP,
        )
        is_as_wanted = (
            live is not None
            and not is_management_disabled(live)
            and (
                is_converged(desired, to_applied_configuration(write, live), live)
                or record.is_accepted(desired.hash, live)
            )
            and not _is_uncertain(record, desired, is_stepped=is_stepped)
        )
    except RenderError as error:
        return Content(problem=(ClusterStatus.APPLY_OVERRIDES_FAILED, str(error)))
    except RetentionError as error:
        return Content(problem=(ClusterStatus.FIELD_RETENTION_FAILED, str(error)))
    if is_as_wanted:
        return Content(write, is_as_wanted=True)
    is_known = is_correction(record, desired.hash, live)
    return Content(replace(write, is_correction=is_known and live is not None), is_correction=is_known)


def _to_stepped(type_: FederatedType, desired: Rendered, live: Object | None, step: Step) -> Rendered:
    """Return the member object as its step has it: what waves hold of a custom resource is as it is in the member."""
    part = rollout_part(type_)
    if part is None or part.is_pod_template:
        return to_stepped(type_.resource, desired, live, step)
    return desired if step.gets_template or live is None else to_held(part, desired, live)


def _is_uncertain(record: MemberRecord, desired: Rendered, *, is_stepped: bool) -> bool:
    """Return whether other content may still arrive: a step counts on what was written, so it is written again."""
    return is_stepped and record.is_unconfirmed and not record.is_repetition(desired.hash)


def settled_status(
    subject: Subject,
    cluster: str,
    live: Object | None,
    wait: tuple[ClusterStatus, str] | None,
    finished: Mapping[str, Any] | None,
) -> tuple[ClusterStatus, str]:
    """Return the status and message of a member object that is as its step says: nothing is to be written.

    `wait` is that of a step which is not the last one, `finished` the evidence that the object has finished.
    """
    if live is not None and finished is not None:
        desired = subject.renderer.render(cluster)
        content = {name: value for name, value in desired.object.items() if name != "metadata"}
        if finished.get("templateHash") != desired.hash and not is_subset(content, live):
            return ClusterStatus.FINISHED, _MISSED_CHANGES
    return wait or (ClusterStatus.OK, "")


def describe_drifted(fields: Sequence[Field], author: Author | None = None) -> str:
    """Return which fields differ in the member, and who has changed them if that is known."""
    who = "" if author is None else f' by "{author.manager}"'
    return f"changed in the cluster{who}: {', '.join(each.name for each in fields)}"


def to_applied_configuration(write: Write, live: Mapping[str, Any]) -> Object:
    """Return the configuration to apply over an existing object, without retained fields; RetentionError."""
    try:
        has_written_ports = names.WRITTEN_ALLOCATIONS in write.federated
        wanted = retain_for_apply(
            write.desired.object, live, has_written_ports=has_written_ports, rules=write.retention
        )
    except (AttributeError, KeyError, TypeError) as error:
        # A malformed answer of one member must not end the reconcile, which serves all members.
        raise RetentionError(f"the object in the cluster is malformed: {error}") from error
    if write.replicas_path:
        wanted = retain_replicas_for_apply(wanted, live, write.replicas_path)
    if (live["metadata"].get("annotations") or {}).get(names.ADOPTED) == "true":
        # The annotation records the adoption; an apply without it would remove it.
        wanted = annotated(wanted, names.ADOPTED, "true")
    return wanted


def annotated(obj: Object, key: str, value: str) -> Object:
    """Return the object with another annotation."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), key: value}}}
