"""What is written to a federated object after looking at it: one merge patch, or none. Pure.

A successful decision becomes placement, replica overrides, annotations and the turn in the pipeline, all at once. An
object that stays as it is only passes its turn on. `reconcile.py` sends the patch.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.paths import to_pointer
from federation.planning import pipeline
from federation.planning.automigration.info import failback_to_text
from federation.planning.placements import Part, to_merge_patch, with_annotations, with_overrides, with_placement
from federation.scheduling.engine import Placements
from federation.scheduling.policy import Policy

_CLUSTERS_NAMED_MAX = 20
_UNITS_S = {"h": 3600, "m": 60, "s": 1}


def keep(
    fed_object: Mapping[str, Any], federated_type: FederatedType, annotations: Mapping[str, str | None]
) -> Part | None:
    """Return the patch that passes the turn on and leaves the placement alone; None when there is nothing to write."""
    turn = _turn(fed_object, federated_type, is_changed=False)
    return to_merge_patch(fed_object, with_annotations(fed_object, {**annotations, **turn}))


def place(
    fed_object: Mapping[str, Any],
    federated_type: FederatedType,
    policy: Policy,
    placements: Placements,
    annotations: Mapping[str, str | None],
) -> tuple[Part | None, bool]:
    """Return the patch that puts a decision in force, and whether clusters or replicas change by it."""
    placement = with_placement(fed_object, names.GLOBAL_SCHEDULER, placements)
    overrides = with_overrides(fed_object, names.GLOBAL_SCHEDULER, _replica_patches(federated_type, placements))
    following = with_annotations(fed_object, following_terms(policy))
    is_moved = bool(placement or overrides)
    written: dict[str, str | None] = dict(annotations)
    written |= migration_terms(fed_object, federated_type, policy)
    if is_moved:
        written[names.SCHEDULING] = _feedback(fed_object, placements)
    written |= _turn(fed_object, federated_type, is_changed=is_moved or bool(following))
    patch = to_merge_patch(fed_object, placement, overrides, following, with_annotations(fed_object, written))
    return patch, is_moved


def following_terms(policy: Policy) -> dict[str, str | None]:
    """Return the annotation by which the follower controller knows what the policy wants."""
    return {names.ENABLE_FOLLOWER_SCHEDULING: "true" if policy.is_followed else "false"}


def migration_terms(
    fed_object: Mapping[str, Any], federated_type: FederatedType, policy: Policy
) -> dict[str, str | None]:
    """Return the annotations by which the automigration controller knows what the policy wants."""
    if not policy.has_auto_migration:
        return {names.POD_UNSCHEDULABLE_THRESHOLD: None, names.FAILBACK: None}
    batch = policy.failback.batch_of(federated_type.replicas(fed_object["spec"]["template"]) or 0)
    return {
        names.POD_UNSCHEDULABLE_THRESHOLD: to_go_duration(policy.unschedulable_threshold),
        names.FAILBACK: failback_to_text(policy.failback.stable_for, batch),
    }


def describe_placement(placement: Placements) -> str:
    """Return for people what clusters get: "east 4, north 2", or only their names when all of it runs in each."""
    named = sorted(placement)[:_CLUSTERS_NAMED_MAX]
    parts = [name if (count := placement[name]) is None else f"{name} {count}" for name in named]
    if len(placement) > len(parts):
        parts.append(f"and {len(placement) - len(parts)} more clusters")
    return ", ".join(parts)


def describe_move(before: Placements, after: Placements) -> str:
    """Return what changes for people: "east 2 → 5, +west 1, -north"; the whole placement when it is the first."""
    if not before:
        return describe_placement(after)
    parts = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if name not in after:
            parts.append(f"-{name}")
        elif name not in before:
            parts.append(f"+{name}" if new is None else f"+{name} {new}")
        elif old != new:
            parts.append(f"{name} {'all' if old is None else old} → {'all' if new is None else new}")
    return ", ".join(parts)


def to_go_duration(text: str) -> str:
    """Return a duration such as "1m" as Go prints it: "1m0s". What is no duration is returned as it is."""
    total, number = 0, ""
    for character in text:
        if character.isdecimal():
            number += character
        elif number and character in _UNITS_S:
            total, number = total + int(number) * _UNITS_S[character], ""
        else:
            return text
    if number or not text:
        return text
    hours, rest = divmod(total, 3600)
    minutes, seconds = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def _turn(fed_object: Mapping[str, Any], federated_type: FederatedType, *, is_changed: bool) -> dict[str, str | None]:
    """Return the annotation that says whose turn is next, {} when that does not change."""
    pending = pipeline.pending(fed_object)
    stages = pipeline.effective(fed_object, federated_type.controllers)
    after = pipeline.after_acting(pending, names.GLOBAL_SCHEDULER, is_changed=is_changed, pipeline=stages)
    return {} if after == pending else {names.PENDING_CONTROLLERS: pipeline.to_annotation(after)}


def _replica_patches(federated_type: FederatedType, placements: Placements) -> dict[str, list[dict[str, Any]]]:
    if not federated_type.paths.replicas_spec:
        return {}
    pointer = to_pointer(federated_type.paths.replicas_spec)
    return {
        cluster: [{"op": "replace", "path": pointer, "value": replicas}]
        for cluster, replicas in placements.items()
        if replicas is not None
    }


def _feedback(fed_object: Mapping[str, Any], placements: Placements) -> str:
    """Return what the user's own object will show about its placement."""
    feedback: dict[str, Any] = {
        "sourceGeneration": (fed_object["spec"]["template"].get("metadata") or {}).get("generation"),
        "fedGeneration": fed_object["metadata"].get("generation"),
        "placement": {name: placements[name] for name in sorted(placements)},
    }
    return orjson.dumps({key: value for key, value in feedback.items() if value is not None}).decode()
