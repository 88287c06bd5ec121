"""Decide whether an object may leave a lost or drained cluster, by the mode of its workload. Pure.

A lost cluster may still run its pods, so a replica that is started elsewhere may be a second copy. StatefulSets, Jobs
with completions and pods with a volume that one node mounts at a time do not tolerate that; they leave only if their
policy says so, and after a grace time. A Job that a queue has admitted leaves after the grace time unless its policy
says otherwise: its queue starts it from the beginning, and its quota must not stay in a cluster that never returns.

Decision: docs/decisions/0267-a-queue-starts-a-lost-job-again.md
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from federation.planning.failover.application import ApplicationRules, StateRule
from federation.planning.leftovers.strays import is_kept_kind

AccessModes = Callable[[str], Sequence[str] | None]
"""Returns the access modes of a PersistentVolumeClaim of the object's namespace, None when the host has no such one."""
_ONE_AT_A_TIME = frozenset(("ReadWriteOnce", "ReadWriteOncePod"))
_OF_TEMPLATES = "the claims of its volumeClaimTemplates"
_OF_COMPLETIONS = "the completions of a Job must not run twice"
GRACE_S_WITH_STATE = 600.0
"""The default of `graceSeconds` for workloads that do not tolerate two copies."""


class FailoverMode(StrEnum):
    """Whether replicas leave lost and drained clusters."""

    AUTO = "Auto"
    NEVER = "Never"


class Returning(StrEnum):
    """Whether replicas return to clusters that they left when these were lost or drained."""

    ALWAYS = "Always"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class FailoverRules:
    """`spec.failover` of a policy; None is the default for the workload."""

    mode: FailoverMode | None = None
    grace_s: float | None = None
    returning: Returning | None = None
    application: ApplicationRules | None = None
    """When a workload leaves a cluster in which it is unhealthy, None for never."""
    state: tuple[StateRule, ...] = ()
    """What a copy that leaves a cluster hands to the one that is created elsewhere."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Whether an object may leave, and how long after the taint it may leave a cluster that is not ready.

    `state` says why the object does not tolerate two copies, "" if it does.
    """

    may_leave: bool
    grace_s: float
    state: str = ""
    is_kept: bool = False
    """Whether objects of the kind stay whatever the policy says."""

    @property
    def released(self) -> "Tolerance":
        """The tolerance of an object that somebody approved to leave."""
        return self if self.is_kept else replace(self, may_leave=True)


def tolerance_of(
    template: Mapping[str, Any], rules: FailoverRules, access_modes: AccessModes, *, is_requeued: bool = False
) -> Tolerance:
    """Return what applies to an object; `is_requeued` for one that waits in its queue again when it leaves."""
    group, _, _ = str(template.get("apiVersion") or "").rpartition("/")
    kind = str(template.get("kind") or "")
    if is_kept_kind(group, kind):
        return Tolerance(may_leave=False, grace_s=0.0, state=f"a {kind} stays in its clusters", is_kept=True)
    state = state_of_workload(template, access_modes)
    may_stay = bool(state) and not (is_requeued and state == _OF_COMPLETIONS)
    mode = rules.mode or (FailoverMode.NEVER if may_stay else FailoverMode.AUTO)
    default_s = GRACE_S_WITH_STATE if state else 0.0
    return Tolerance(mode is FailoverMode.AUTO, default_s if rules.grace_s is None else max(0.0, rules.grace_s), state)


def state_of_workload(template: Mapping[str, Any], access_modes: AccessModes) -> str:
    """Return why the workload does not tolerate two copies of a replica, "" if it does."""
    kind, spec = str(template.get("kind") or ""), _mapping(template.get("spec"))
    if kind == "StatefulSet":
        return "the pods of a StatefulSet must not run twice"
    if _has_claim_templates(spec):
        return f"{_OF_TEMPLATES} do not move"
    for name in _claims(kind, spec):
        modes = access_modes(name)
        if modes is None:
            return f"PersistentVolumeClaim {name} is not on the host, so its access modes are unknown"
        if not _ONE_AT_A_TIME.isdisjoint(modes):
            return f"PersistentVolumeClaim {name} is {' and '.join(sorted(_ONE_AT_A_TIME.intersection(modes)))}"
    has_completions = kind in ("Job", "CronJob") and _job_spec(kind, spec).get("completions") is not None
    return _OF_COMPLETIONS if has_completions else ""


def fixed_volumes_of(template: Mapping[str, Any], access_modes: AccessModes) -> str:
    """Return which volumes of the workload do not move to another cluster, "" for none.

    Claim templates count in every kind that has them: StatefulSets, CloneSets, and the workload of a UnitedDeployment.
    """
    if _has_claim_templates(_mapping(template.get("spec"))):
        return _OF_TEMPLATES
    return next((f"PersistentVolumeClaim {name}" for name in fixed_claims_of(template, access_modes)), "")


def fixed_claims_of(template: Mapping[str, Any], access_modes: AccessModes) -> Iterator[str]:
    """Yield the claims of the host that the workload's pods name and that do not move."""
    for name in _claims(str(template.get("kind") or ""), _mapping(template.get("spec"))):
        if not _ONE_AT_A_TIME.isdisjoint(access_modes(name) or ()):
            yield name


def _has_claim_templates(spec: Mapping[str, Any]) -> bool:
    inner = (_mapping(_mapping(each).get("spec")) for each in _mapping(spec.get("template")).values())
    return any(bool(each.get("volumeClaimTemplates")) for each in (spec, *inner))


def _job_spec(kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec that has the pod template: of a CronJob that of its Jobs."""
    return _mapping(_mapping(spec.get("jobTemplate")).get("spec")) if kind == "CronJob" else spec


def _claims(kind: str, spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the claims that the workload's pods use."""
    pod_spec = spec if kind == "Pod" else _mapping(_mapping(_job_spec(kind, spec).get("template")).get("spec"))
    volumes = pod_spec.get("volumes")
    for volume in volumes if isinstance(volumes, list) else ():
        name = _mapping(_mapping(volume).get("persistentVolumeClaim")).get("claimName")
        if name:
            yield str(name)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
