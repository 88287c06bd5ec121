"""The simulated volume controller: binds PersistentVolumeClaims, and provisions and removes PersistentVolumes.

A claim gets a matching free volume, else a new one, unless its class is "", which means existing volumes only. One of
a StorageClass with `WaitForFirstConsumer` waits for a pod with a node. Any other class provisions, also one without a
StorageClass: a simulated member has storage. A provisioned volume goes with its claim.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from federation.apimachinery.errors import AlreadyExists, NotFound
from federation.apimachinery.quantity import to_int_ceil
from federation.apimachinery.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Object,
)
from federation.runtime.controller import Controller, Key, Result, key_of
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.memberparts import Member

_DONE = Result()
_BY_CLAIM = "claim"
_PROVISIONER = "simulated-disk.example.com"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


class VolumeController:
    """Reconciles the claims of one member, and volumes ("" as namespace in the key)."""

    def __init__(self, member: Member) -> None:
        self._client = member.client
        self._claims = claims = member.cache(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = volumes = member.cache(PERSISTENT_VOLUMES)
        self._classes = member.cache(STORAGE_CLASSES)
        self._pods = pods = member.cache(PODS)
        self.controller = Controller("sim-volume", self._reconcile, workers=1, clock=member.clock)
        pods.add_index(_BY_CLAIM, _claims_of)
        claims.add_handler(self._claim_changed)
        volumes.add_handler(self._volume_changed)
        pods.add_handler(self._pod_changed)

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or (new.get("status") or {}).get("phase") != "Bound":
            self.controller.enqueue(key_of(new or old or {}))
        if new is None and old is not None and (volume := old["spec"].get("volumeName")):
            self.controller.enqueue(Key("", volume))

    def _volume_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or old["spec"] != new["spec"]):
            self.controller.enqueue(key_of(new))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or not new["spec"].get("nodeName") or (old and old["spec"].get("nodeName")):
            return
        for value in _claims_of(new):
            self.controller.enqueue(Key(*value.split("/")))

    async def _reconcile(self, key: Key) -> Result:
        if not key.namespace:
            await self._reconcile_volume(key.name)
            return _DONE
        claim = self._claims.get(key.namespace, key.name)
        if claim is None or podsof.is_terminating(claim) or (claim.get("status") or {}).get("phase") == "Bound":
            return _DONE
        name = claim["spec"].get("volumeName") or ""
        volume = self._volumes.get("", name) if name else self._find_volume(claim)
        if volume is None and (name or not self._may_provision(claim)):
            return _DONE
        volume = await self._provision(claim) if volume is None else await self._claim_volume(claim, volume)
        await self._bind(claim, volume)
        return _DONE

    async def _reconcile_volume(self, name: str) -> None:
        """Bring the phase of a volume up to date, and delete a provisioned one whose claim is gone.

        A volume that is being deleted is released, too: until then a finalizer holds it.
        """
        volume = self._volumes.get("", name)
        if volume is None:
            return
        reference = volume["spec"].get("claimRef")
        phase = "Available"
        if reference is not None and reference.get("uid"):
            claim = self._claims.get(reference["namespace"], reference["name"])
            phase = "Bound" if claim is not None and claim["metadata"]["uid"] == reference["uid"] else "Released"
        if (volume.get("status") or {}).get("phase") != phase:
            await podsof.write_status(self._client, self._volumes, PERSISTENT_VOLUMES, volume, {"phase": phase})
        if phase == "Released" and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            with contextlib.suppress(NotFound):
                await self._client.delete(PERSISTENT_VOLUMES, name, uid=volume["metadata"]["uid"])

    def _find_volume(self, claim: Object) -> Object | None:
        """Return the smallest free volume that fits the claim."""
        spec = claim["spec"]
        if spec.get("selector"):
            return None  # volumes for a selector are named by hand, with spec.volumeName
        wanted = _size(spec["resources"]["requests"])
        fitting = [
            volume
            for volume in self._volumes.list()
            if _is_free_for(volume, claim)
            and (volume["spec"].get("storageClassName") or "") == (spec.get("storageClassName") or "")
            and set(spec["accessModes"]) <= set(volume["spec"]["accessModes"])
            and _size(volume["spec"]["capacity"]) >= wanted
        ]
        return min(fitting, key=lambda each: (_size(each["spec"]["capacity"]), each["metadata"]["name"]), default=None)

    def _may_provision(self, claim: Object) -> bool:
        name = claim["spec"].get("storageClassName")
        if name == "":
            return False
        storage_class = self._classes.get("", name) if name else None
        if storage_class is None or storage_class.get("volumeBindingMode") != "WaitForFirstConsumer":
            return True
        meta = claim["metadata"]
        users = self._pods.by_index(_BY_CLAIM, f"{meta['namespace']}/{meta['name']}")
        return any(pod["spec"].get("nodeName") for pod in users)

    async def _provision(self, claim: Object) -> Object:
        meta, spec = claim["metadata"], claim["spec"]
        storage_class = self._classes.get("", spec.get("storageClassName") or "") or {}
        name = f"pvc-{meta['uid']}"
        volume: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {_PROVISIONED_BY: _PROVISIONER}},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
                "volumeMode": spec.get("volumeMode", "Filesystem"),
                "claimRef": _reference(claim),
                "csi": {"driver": _PROVISIONER, "volumeHandle": name},
                **({"storageClassName": spec["storageClassName"]} if spec.get("storageClassName") else {}),
            },
        }
        try:
            created = await self._client.create(PERSISTENT_VOLUMES, volume)
        except AlreadyExists:
            return await self._client.get(PERSISTENT_VOLUMES, name)
        await self._volumes.wait_for(created["metadata"]["resourceVersion"])
        return created

    async def _claim_volume(self, claim: Object, volume: Object) -> Object:
        """Reserve an existing volume for the claim."""
        if (volume["spec"].get("claimRef") or {}).get("uid") == claim["metadata"]["uid"]:
            return volume
        updated = await self._client.update(
            PERSISTENT_VOLUMES, {**volume, "spec": {**volume["spec"], "claimRef": _reference(claim)}}
        )
        await self._volumes.wait_for(updated["metadata"]["resourceVersion"])
        return updated

    async def _bind(self, claim: Object, volume: Object) -> None:
        meta = claim["metadata"]
        patch = {"metadata": {"annotations": _BOUND}, "spec": {"volumeName": volume["metadata"]["name"]}}
        try:
            bound = await self._client.patch(PERSISTENT_VOLUME_CLAIMS, meta["name"], patch, namespace=meta["namespace"])
        except NotFound:
            return
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": {"storage": volume["spec"]["capacity"]["storage"]},
        }
        await podsof.write_status(self._client, self._claims, PERSISTENT_VOLUME_CLAIMS, bound, status)
        self.controller.enqueue(Key("", volume["metadata"]["name"]))


def _is_free_for(volume: Object, claim: Object) -> bool:
    reference = volume["spec"].get("claimRef")
    if podsof.is_terminating(volume):
        return False
    if reference is None:
        return True
    meta = claim["metadata"]
    is_named = (reference.get("namespace"), reference.get("name")) == (meta["namespace"], meta["name"])
    return is_named and reference.get("uid") in (None, meta["uid"])


def _reference(claim: Object) -> Object:
    meta = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        **{key: meta[key] for key in ("namespace", "name", "uid", "resourceVersion")},
    }


def _size(amounts: Mapping[str, Any]) -> int:
    return to_int_ceil(str(amounts.get("storage", "0")))


def _claims_of(pod: Object) -> list[str]:
    """Return the claims that a pod uses, as `namespace/name`."""
    volumes = pod["spec"].get("volumes") or ()
    names = [each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each]
    return [f"{pod['metadata']['namespace']}/{name}" for name in names]
