"""Updates of pods in place: the change of a pod's images without a new pod, as OpenKruise does it. Pure.

The containers of such a pod restart with the new image, and the pod keeps its name, node, address and volumes. The pod
counts as unavailable until the kubelet has started the new containers.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.simulator.controllers.revisions import REVISION_LABEL

_STATE = "apps.kruise.io/inplace-update-state"
"""Annotation of a pod: its revision and the time of the last update in place."""

RECREATE, IN_PLACE_ONLY = "ReCreate", "InPlaceOnly"

Images = Mapping[str, str]


def changed_images(before: Mapping[str, Any], after: Mapping[str, Any]) -> Images | None:
    """Return the new images by container, None if the pod templates differ in anything else."""
    old, new = _containers(before), _containers(after)
    if _without_images(before) != _without_images(after):
        return None
    return {one["name"]: two.get("image", "") for one, two in zip(old, new, strict=True) if one != two}


def to_patch(pod: Mapping[str, Any], images: Images, revision: str, now: str) -> dict[str, Any]:
    """Return the merge patch that gives a pod its new images; `now` is RFC 3339 text."""
    containers = [
        {**container, "image": images.get(container["name"], container.get("image", ""))}
        for container in pod["spec"]["containers"]
    ]
    state = orjson.dumps({"revision": revision, "updateTimestamp": now}).decode()
    return {
        "metadata": {"labels": {REVISION_LABEL: revision}, "annotations": {_STATE: state}},
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
    return {**template, "spec": {**template["spec"], "containers": containers}}
