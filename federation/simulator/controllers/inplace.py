"""Updates of pods in place: new images, labels and annotations without a new pod, as OpenKruise does it. Pure.

The containers of such a pod restart with the new image, and the pod keeps its name, node, address and volumes. The pod
counts as unavailable until the kubelet has started the new containers. New labels and annotations restart nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from federation.simulator.controllers.revisions import REVISION_LABEL

_STATE = "apps.kruise.io/inplace-update-state"
"""Annotation of a pod: its revision and the time of the last update in place."""

RECREATE, IN_PLACE_ONLY = "ReCreate", "InPlaceOnly"

_METADATA = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class Change:
    """The difference of two pod templates that a pod can get in place."""

    images: Mapping[str, str]
    """The new images by container."""
    metadata: Mapping[str, Mapping[str, str | None]]
    """New values of `labels` and `annotations`; None for those that the newer template lacks."""


def changed_in_place(before: Mapping[str, Any], after: Mapping[str, Any]) -> Change | None:
    """Return the change between two pod templates, None if they differ in more than images and metadata."""
    old, new = _containers(before), _containers(after)
    if _without_images(before) != _without_images(after):
        return None
    images = {one["name"]: two.get("image", "") for one, two in zip(old, new, strict=True) if one != two}
    return Change(images, {field: _changed_values(before, after, field) for field in _METADATA})


def to_patch(pod: Mapping[str, Any], change: Change, revision: str, now: str) -> dict[str, Any]:
    """Return the merge patch that gives a pod the change; `now` is RFC 3339 text."""
    containers = [
        {**container, "image": change.images.get(container["name"], container.get("image", ""))}
        for container in pod["spec"]["containers"]
    ]
    state = orjson.dumps({"revision": revision, "updateTimestamp": now}).decode()
    return {
        "metadata": {
            "labels": {**change.metadata["labels"], REVISION_LABEL: revision},
            "annotations": {**change.metadata["annotations"], _STATE: state},
        },
        "spec": {"containers": containers},
    }


def is_updating(pod: Mapping[str, Any]) -> bool:
    """Return True if a container of the pod runs another image than its spec has."""
    images = {each["name"]: each.get("image", "") for each in pod["spec"].get("containers", ())}
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(images.get(each["name"], each["image"]) != each["image"] for each in statuses)


def _containers(template: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = template["spec"].get("containers") or []
    return found


def _without_images(template: Mapping[str, Any]) -> dict[str, Any]:
    containers = [{key: value for key, value in each.items() if key != "image"} for each in _containers(template)]
    return {**template["spec"], "containers": containers}


def _changed_values(before: Mapping[str, Any], after: Mapping[str, Any], field: str) -> dict[str, str | None]:
    old: Mapping[str, str] = (before.get("metadata") or {}).get(field) or {}
    new: Mapping[str, str] = (after.get("metadata") or {}).get(field) or {}
    removed: dict[str, str | None] = dict.fromkeys(old.keys() - new.keys())
    return removed | {key: value for key, value in new.items() if old.get(key) != value}
