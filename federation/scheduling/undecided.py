"""Why the journal has no decision about an object of the host: each state has its own sentence and remedy. Pure."""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import Ending, FederatedType
from federation.planning.federatedobject.eligibility import exclusion
from federation.planning.federatedobject.placements import effective_placement
from federation.scheduling.policymatching import PolicyIndex, labelled_policy

_REMEDIES = {f"it has the annotation {names.NO_FEDERATED_RESOURCE}": "; remove the annotation"}


def undecided_reason(
    source: Mapping[str, Any],
    type_: FederatedType | None,
    federated: Mapping[str, Any] | None,
    policies: PolicyIndex,
    *,
    may_follow: bool = False,
) -> str:
    """Return why an object was never scheduled, to be continued after its name.

    `source` is {} when it may not be read. `policies` has those of its namespace and those of clusters.
    """
    if type_ is None:
        return "is not federated: no FederatedTypeConfig covers its kind"
    if source and (excluded := exclusion(source)):
        return f"is not federated: {excluded}{_REMEDIES.get(excluded, '')}"
    if clusters := sorted(effective_placement(federated or {})):
        return f"is in {', '.join(clusters)}; another controller than the scheduler placed it there"
    reason = _of_type(type_, federated) or _of_annotation(source) or _of_policy(source, federated, policies)
    follow = f"; or let a workload that has a policy refer to it or list it in the annotation {names.FOLLOWERS}"
    if reason:
        return f"was never scheduled: {reason}"
    return (
        f"was never scheduled: no existing policy applies to it; name a policy in its label"
        f" {names.PROPAGATION_POLICY_LABEL}, or select it in a policy's spec.resourceSelectors"
        f"{follow if may_follow else ''}"
    )


def _of_type(type_: FederatedType, federated: Mapping[str, Any] | None) -> str:
    name = f"FederatedTypeConfig {type_.name}"
    if type_.ending is Ending.WAITS and federated is None:
        return (
            f"{name} is being deleted, so new objects stay on the host. It waits for a word about those in members:"
            f" kubectl annotate federatedtypeconfig {type_.name} {names.ORPHAN}=all leaves them there,"
            f" {names.CASCADING_DELETE}=true removes them"
        )
    if type_.ending in (Ending.ORPHAN, Ending.REMOVE):
        return f"{name} is being deleted; create it again when it is gone"
    if not any(names.GLOBAL_SCHEDULER in stage for stage in type_.controllers):
        return f"{name} has no {names.GLOBAL_SCHEDULER} in spec.controllers, so no policy places objects of the kind"
    return ""


def _of_annotation(source: Mapping[str, Any]) -> str:
    annotations = (source.get("metadata") or {}).get("annotations") or {}
    if annotations.get(names.NO_SCHEDULING):
        return f"its annotation {names.NO_SCHEDULING} forbids it; remove the annotation"
    return ""


def _of_policy(source: Mapping[str, Any], federated: Mapping[str, Any] | None, policies: PolicyIndex) -> str:
    if not source:
        return ""
    metadata = source["metadata"]
    namespace, labels = str(metadata.get("namespace") or ""), metadata.get("labels") or {}
    ref = labelled_policy(namespace, labels) or policies.selecting_policy(namespace, source)
    if ref is None:
        return ""
    if policies.get(ref) is None:
        return f"its label names {ref}, which does not exist; create the policy or correct the label"
    if federated is None:
        return (
            f"{ref} applies to it, and the control plane has not taken it up yet; if that lasts, see its events and"
            " `fedctl doctor`"
        )
    return f"{ref} applies to it, and its first decision is not made yet; if that lasts, see `fedctl doctor`"
