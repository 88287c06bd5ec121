"""Pods of groups in scheduling: what the leader asks for, and where the others go. Pure.

The record of a group is in `planning/podgroups.py`. The leader is a gang of all pods of the group. Another pod is not
compared with clusters at all: the leader's decision was about it, too, and its room is already promised.
"""

from collections.abc import Collection, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.planning.clusters.deviceclaims import Claims
from federation.planning.components import ComponentError, ComponentPods
from federation.planning.federatedobject.placements import placement_of
from federation.planning.podgroups import POD_GROUP, PodGroup, group_of
from federation.scheduling.framework.shapekeys import ShapeKey
from federation.scheduling.framework.types import PodSet
from federation.scheduling.podrequest import (
    claims_of,
    pod_count,
    pods_per_replica,
    request_of,
    to_pod_set,
    total_request,
)

JOINS: ShapeKey[frozenset[str] | None] = ShapeKey("joins", None)
"""The clusters of the leader of its pod group, None without one."""


def membership_of(federated: Mapping[str, Any]) -> PodGroup | None:
    """Return what a pod is in its group, None for an object without one.

    A pod that got its label after its place is without one until the group counts it: it runs, so it is charged.
    """
    ref = group_of(federated["spec"]["template"])
    if ref is None:
        return None
    record = POD_GROUP.of(federated) or PodGroup(ref.name, waits=_together(ref.name, "another one"))
    return None if record.waits and placement_of(federated, names.GLOBAL_SCHEDULER) else record


def pods_in(group: PodGroup, claims: Claims) -> tuple[PodSet, ...]:
    """Return the pods for which a leader decides; ComponentError if they cannot be counted."""
    listed = [ComponentPods("pods", each.count, each.count, each.pod) for each in group.pods]
    return tuple(to_pod_set(each, claims) for each in listed)


def request_in(
    group: PodGroup | None, template: Mapping[str, Any], type_: FederatedType, claims: Claims
) -> dict[str, int]:
    """Return the request of one replica; that of a leader is for the whole group."""
    if group is None or not group.leads:
        return request_of(template, type_, claims)
    return total_request(_counted(group, claims))


def charged_to(federated: Mapping[str, Any], type_: FederatedType) -> tuple[dict[str, int], int] | None:
    """Return the request of a replica and the number of its pods, for quotas; None for a pod whose leader has it."""
    template, claims = federated["spec"]["template"], claims_of(federated)
    group = membership_of(federated)
    if group is None:
        return request_of(template, type_, claims), pods_per_replica(template, type_)
    if not group.leads:
        return None
    pods = _counted(group, claims)
    return total_request(pods), pod_count(pods)


def _counted(group: PodGroup, claims: Claims) -> tuple[PodSet, ...]:
    """Return the pods of a group, none if they cannot be counted: then the group is not placed."""
    try:
        return pods_in(group, claims)
    except ComponentError:
        return ()


def wait_of(group: PodGroup | None) -> str:
    """Return why a pod waits for its group, "" if it does not. A pod that runs waits if its leader has no place."""
    if group is None or group.clusters:
        return ""
    if group.waits:
        return group.waits
    return _together(group.name, f"pod {group.leader}") if group.leader else ""


def _together(name: str, leader: str) -> str:
    return f"the pods of its group {name} start together; {leader} of them says what they wait for"


def is_elsewhere(group: PodGroup | None, current: Collection[str]) -> bool:
    """Return whether a pod is not where its leader is."""
    return group is not None and bool(group.leader) and set(group.clusters) != set(current)
