"""Pods and their owners: how the workload controllers of a simulated member judge, make, delete and count pods.

The judgements (`is_ready`, `is_available` …) are pure and those of Kubernetes. `PodControl` writes pods; it returns
when the informer has seen new pods, so that the next decision counts them. Read `kubelet.py` for what pods do.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.conditions import find, is_true
from federation.apimachinery.errors import AlreadyExists, ApiError, NotFound, ServiceUnavailable
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import PODS, Object, Resource
from federation.client.client import Client
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.events import WARNING, Recorder
from federation.runtime.handlers import Handler
from federation.runtime.informer import Informer
from federation.simulator.controllers.claiming import Dependents

FAILED_CREATE = "FailedCreate"
"""The reason of Events about pods that the API server refuses, and of a ReplicaSet's condition."""
BURST_MAX = 50
"""Pods to create or delete in one reconcile; the next one continues."""
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names, as in Kubernetes: no vowels, so that no words appear."""


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return True if the condition Ready holds."""
    return is_true((pod.get("status") or {}).get("conditions"), "Ready")


def is_terminating(pod: Mapping[str, Any]) -> bool:
    """Return True if the pod has a deletionTimestamp."""
    return "deletionTimestamp" in pod["metadata"]


def phase_of(pod: Mapping[str, Any]) -> str:
    """Return the pod's phase; Pending before the kubelet reported one."""
    return (pod.get("status") or {}).get("phase") or "Pending"


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Return True if the pod's containers have ended for good."""
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: Mapping[str, Any]) -> bool:
    """Return True if the pod counts for its owner: neither finished nor terminating."""
    return not is_finished(pod) and not is_terminating(pod)


def available_at(pod: Mapping[str, Any], min_ready_s: int) -> datetime | None:
    """Return the time from which a ready pod is available, None for a pod that is not ready."""
    condition = find((pod.get("status") or {}).get("conditions"), "Ready")
    if condition is None or condition["status"] != "True":
        return None
    return from_rfc3339(condition["lastTransitionTime"]) + timedelta(seconds=min_ready_s)


def is_available(pod: Mapping[str, Any], min_ready_s: int, now: datetime) -> bool:
    """Return True if the pod has been ready for `min_ready_s` seconds."""
    if min_ready_s == 0:
        return is_ready(pod)
    since = available_at(pod, min_ready_s)
    return since is not None and since <= now


def next_available_s(pods: Iterable[Mapping[str, Any]], min_ready_s: int, now: datetime) -> float | None:
    """Return the seconds until the next ready pod becomes available, None when no pod waits for that."""
    if min_ready_s == 0:
        return None
    times = [at for pod in pods if (at := available_at(pod, min_ready_s)) is not None and at > now]
    return (min(times) - now).total_seconds() if times else None


def to_pod(owner: Mapping[str, Any], resource: Resource, template: Mapping[str, Any], name: str) -> Object:
    """Return a new pod of an owner; the caller may replace its `metadata` and `spec`, which are shallow copies."""
    meta = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **{key: dict(meta[key]) for key in ("labels", "annotations") if meta.get(key)},
            **({"finalizers": list(meta["finalizers"])} if meta.get("finalizers") else {}),
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "ownerReferences": [controller_reference(owner, resource.api_version, resource.kind)],
        },
        "spec": dict(template["spec"]),
    }


def mount_claims(pod: Object, claims: Mapping[str, str]) -> None:
    """Give a new pod the claims of its own, by the names of their volumes, which replace those of its template."""
    others = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in claims]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()]
    if volumes or others:
        pod["spec"]["volumes"] = [*volumes, *others]


class NameSuffixes:
    """Random suffixes of names, repeatable from a seed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def new(self) -> str:
        """Return five characters."""
        return "".join(self._rng.choices(NAME_ALPHABET, k=5))


class PodControl(Dependents):
    """Creates and deletes pods, for the controllers of all kinds."""

    def __init__(self, client: Client, pods: Informer, recorder: Recorder) -> None:
        super().__init__(client, pods)
        self._pods = pods
        self._recorder = recorder

    async def create(self, owner: Object, pods: Sequence[Object]) -> bool:
        """Create pods of an owner; return False if the name of one was taken, so that it must be tried with another.

        What the API server refuses is an Event of the owner. When the other pods exist, ServiceUnavailable repeats the
        first refusal: what is refused now may be admitted later, so the reconcile is retried and has not failed.
        """
        if not pods:
            return True
        made = await asyncio.gather(*(self._create(pod) for pod in pods))
        created = [each for each in made if isinstance(each, dict)]
        if newest := max((each["metadata"]["resourceVersion"] for each in created), key=int, default=""):
            await self._pods.wait_for(newest)
        refusals = [each for each in made if isinstance(each, ApiError)]
        for refusal in refusals:
            self._recorder.event(owner, WARNING, FAILED_CREATE, f"Error creating: {refusal.message}")
        if refusals:
            raise ServiceUnavailable(refusals[0].message) from refusals[0]
        return None not in made

    async def _create(self, pod: Object) -> Object | ApiError | None:
        try:
            return await self._client.create(PODS, pod)
        except AlreadyExists:
            return None
        except ApiError as error:
            return error

    async def patch(self, pod: Mapping[str, Any], patch: Object) -> None:
        """Send a merge patch of the pod, and return when the informer has it."""
        meta = pod["metadata"]
        try:
            written = await self._client.patch(PODS, meta["name"], patch, namespace=meta["namespace"])
        except NotFound:
            return
        await self._pods.wait_for(written["metadata"]["resourceVersion"])

    async def delete(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Request the deletion of the pods."""
        for pod in pods:
            meta = pod["metadata"]
            try:
                await self._client.delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"])
            except NotFound:
                continue


async def write_status(
    client: Client, informer: Informer, resource: Resource, obj: Object, status: Object, **metadata: Any
) -> None:
    """Replace the object's status unless it is the same, and wait until the informer has it.

    `metadata` replaces fields of the object's metadata in the same write. A Conflict makes the caller read again.
    """
    if status == (obj.get("status") or {}) and not metadata:
        return
    try:
        written = await client.update(
            resource, {**obj, "metadata": {**obj["metadata"], **metadata}, "status": status}, subresource="status"
        )
    except NotFound:
        return  # deleted meanwhile
    await informer.wait_for(written["metadata"]["resourceVersion"])


def is_spec_change(old: Object | None, new: Object | None) -> bool:
    """Return False for an update of status, labels or annotations: generation and deletionTimestamp are the same."""
    if old is None or new is None:
        return True
    before, after = old["metadata"], new["metadata"]
    return bool(
        before.get("generation") != after.get("generation")
        or before.get("deletionTimestamp") != after.get("deletionTimestamp")
    )


def owner_key(obj: Mapping[str, Any], kind: str) -> Key | None:
    """Return the key of the controlling owner of that kind, None when the object has none."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference["kind"] == kind:
            return Key(obj["metadata"]["namespace"], reference["name"])
    return None


def on_spec_change(controller: Controller[Key]) -> Handler:
    """Return a handler that queues an object when its spec changes, and when it appears or goes."""

    def handle(old: Object | None, new: Object | None) -> None:
        if is_spec_change(old, new):
            controller.enqueue(key_of(new or old or {}))

    return handle


def on_owned_change(controller: Controller[Key], kind: str) -> Handler:
    """Return a handler that queues the owner of this kind for every change of an object that it controls."""

    def handle(old: Object | None, new: Object | None) -> None:
        if (key := owner_key(new or old or {}, kind)) is not None:
            controller.enqueue(key)

    return handle
