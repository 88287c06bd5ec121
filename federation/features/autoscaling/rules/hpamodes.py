"""The modes of a HorizontalPodAutoscaler on the host, by its label `hpa-mode`, and why one does not work. Pure.

`centralized`: it acts on the host and is not delivered; the policy of its workload must divide. `distributed`: it is
delivered with its workload, which each member scales; the policy must duplicate and schedule followers, and the
workload must name the autoscaler as a follower and keep the replicas of its members. Texts, label and annotation are
those of KubeAdmiral (docs/reference/autoscaling.md).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from federation.api import names
from federation.features.autoscaling.names import CENTRALIZED_HPA_ENABLED, FED_HPA_NOT_WORK_REASON
from federation.planning.followers.references import FollowersError, Reference, listed_followers

WORKS = "[]"
"""The problem of an autoscaler that works: an empty list of sentences."""
_FOLLOWER_KINDS = ("autoscaling", "HorizontalPodAutoscaler")


class BoundPolicy(NamedTuple):
    """The policy of a workload; `spec` is None if it does not exist."""

    kind: str
    name: str
    spec: Mapping[str, Any] | None


def mode_of(autoscaler: Mapping[str, Any]) -> str:
    """Return the label's value, "" without one."""
    return str((autoscaler["metadata"].get("labels") or {}).get(names.HPA_MODE) or "")


def central_problem(policy: BoundPolicy | None) -> str:
    """Return why an autoscaler cannot act on the host, WORKS if it can."""
    sentences = _unusable(policy)
    if policy is not None and policy.spec is not None and policy.spec.get("schedulingMode") != "Divide":
        sentences.append(_about(policy, "is not Divided mode."))
    return _joined(sentences)


def distributed_problem(policy: BoundPolicy | None, workload: Mapping[str, Any], autoscaler: Mapping[str, Any]) -> str:
    """Return why an autoscaler does not act in the members, WORKS if it does.

    `workload` has the namespace and the annotations of the federated workload.
    """
    annotations = workload["metadata"].get("annotations") or {}
    sentences = []
    if annotations.get(names.RETAIN_REPLICAS) != "true":
        sentences.append("The workload is not enabled for retain replicas.")
    if not _follows(autoscaler, workload["metadata"].get("namespace", ""), annotations):
        sentences.append("The hpa is not follow the workload.")
    sentences += _unusable(policy)
    if policy is not None and policy.spec is not None:
        if policy.spec.get("schedulingMode", "Duplicate") != "Duplicate":
            sentences.append(_about(policy, "is not Duplicate mode."))
        if policy.spec.get("disableFollowerScheduling"):
            sentences.append(_about(policy, "is not enabled for follower scheduling."))
    return _joined(sentences)


def plan_marks(autoscaler: Mapping[str, Any], problem: str) -> dict[str, Any] | None:
    """Return the merge patch with the label of a working centralized autoscaler, or the reason annotation.

    None when nothing changes. `problem` is "" for an autoscaler without a mode.
    """
    metadata = autoscaler["metadata"]
    is_enabled = problem == WORKS and mode_of(autoscaler) == names.HPA_CENTRALIZED
    wanted = {
        "labels": {CENTRALIZED_HPA_ENABLED: "true" if is_enabled else None},
        "annotations": {FED_HPA_NOT_WORK_REASON: problem if problem not in ("", WORKS) else None},
    }
    changed = {
        field: entries
        for field, entries in wanted.items()
        if any((metadata.get(field) or {}).get(key) != value for key, value in entries.items())
    }
    return {"metadata": changed} if changed else None


def _follows(autoscaler: Mapping[str, Any], namespace: str, annotations: Mapping[str, str]) -> bool:
    metadata = autoscaler["metadata"]
    if (metadata.get("annotations") or {}).get(names.DISABLE_FOLLOWING) == "true":
        return False
    try:
        listed = listed_followers(annotations)
    except FollowersError:
        return False
    return metadata.get("namespace", "") == namespace and Reference(*_FOLLOWER_KINDS, metadata["name"]) in listed


def _unusable(policy: BoundPolicy | None) -> list[str]:
    if policy is None:
        return ["The workload is not bound to any propagationPolicy."]
    return [] if policy.spec is not None else [_about(policy, "does not exist.")]


def _about(policy: BoundPolicy, text: str) -> str:
    return f"The {policy.kind} {policy.name} bound to the workload {text}"


def _joined(sentences: list[str]) -> str:
    return f"[{' '.join(sentences)}]"
