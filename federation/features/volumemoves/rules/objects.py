"""The objects that a move makes in members: snapshots, VolSync's replications, and claims. Pure.

Each has the annotation of its move, so that no other object of its name is used or deleted. The fields are those of
snapshot.storage.k8s.io/v1 and volsync.backube/v1alpha1.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, SECRETS, Object, Resource
from federation.features.volumemoves.names import VOLUME_MOVE
from federation.features.volumemoves.rules.moverecord import Wish

_SNAPSHOT_GROUP = "snapshot.storage.k8s.io"
SNAPSHOTS = Resource(_SNAPSHOT_GROUP, "v1", "VolumeSnapshot", "volumesnapshots")
CONTENTS = Resource(_SNAPSHOT_GROUP, "v1", "VolumeSnapshotContent", "volumesnapshotcontents", namespaced=False)
_VOLSYNC_GROUP = "volsync.backube"
SOURCES = Resource(_VOLSYNC_GROUP, "v1alpha1", "ReplicationSource", "replicationsources")
DESTINATIONS = Resource(_VOLSYNC_GROUP, "v1alpha1", "ReplicationDestination", "replicationdestinations")
PSK = "psk.txt"
"""The only key that is copied of a Secret which a status names: nothing else of that namespace leaves its cluster."""
_KEPT_DOMAINS_NOT = ("kubeadmiral.io",)


def body_of(resource: Resource, name: str, namespace: str, move: str, **fields: Any) -> Object:
    """Return an object with the mark of its move."""
    metadata: Object = {"name": name, "annotations": {VOLUME_MOVE: move}}
    if resource.namespaced:
        metadata["namespace"] = namespace
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}


def is_of(obj: Mapping[str, Any], move: str) -> bool:
    """Return whether the move made the object."""
    return (obj["metadata"].get("annotations") or {}).get(VOLUME_MOVE) == move


def name_of(move: str, claim: str) -> str:
    """Return the name of what a move makes for a claim."""
    return f"{move}-{claim}"[:253].rstrip("-.")


def snapshot_of_claim(move: str, namespace: str, claim: str, wish: Wish) -> Object:
    """Return the snapshot of a claim in the source."""
    spec: Object = {"source": {"persistentVolumeClaimName": claim}}
    if wish.snapshot_class:
        spec["volumeSnapshotClassName"] = wish.snapshot_class
    return body_of(SNAPSHOTS, name_of(move, claim), namespace, move, spec=spec)


def content_of_handle(move: str, namespace: str, claim: str, content: Mapping[str, Any]) -> Object:
    """Return the content in the target that stands for the source's snapshot in the storage that both use.

    It is retained: what it stands for belongs to the source.
    """
    name, spec = name_of(move, claim), content["spec"]
    reference = {"apiVersion": SNAPSHOTS.api_version, "kind": SNAPSHOTS.kind, "namespace": namespace, "name": name}
    found: Object = {
        "deletionPolicy": "Retain",
        "driver": spec["driver"],
        "source": {"snapshotHandle": content["status"]["snapshotHandle"]},
        "volumeSnapshotRef": reference,
    }
    if mode := spec.get("sourceVolumeMode"):
        found["sourceVolumeMode"] = mode
    return body_of(CONTENTS, content_name(move, namespace, claim), "", move, spec=found)


def content_name(move: str, namespace: str, claim: str) -> str:
    """Return the name of the content in the target, which no other namespace has."""
    return name_of(move, f"{namespace}-{claim}")


def snapshot_of_content(move: str, namespace: str, claim: str) -> Object:
    """Return the snapshot in the target."""
    source = {"volumeSnapshotContentName": content_name(move, namespace, claim)}
    return body_of(SNAPSHOTS, name_of(move, claim), namespace, move, spec={"source": source})


def claim_like(claim: Mapping[str, Any], move: str, wish: Wish, *, snapshot: str = "") -> Object:
    """Return the claim for the target: as large as the volume in the source, from a snapshot or empty."""
    metadata, spec = claim["metadata"], claim["spec"]
    requests = {"storage": storage_of(claim)}
    found: Object = {"accessModes": spec["accessModes"], "resources": {"requests": requests}}
    if mode := spec.get("volumeMode"):
        found["volumeMode"] = mode
    if (name := spec.get("storageClassName")) is not None:
        found["storageClassName"] = wish.storage_classes.get(name, name)
    if snapshot:
        found["dataSource"] = {"apiGroup": SNAPSHOTS.group, "kind": SNAPSHOTS.kind, "name": snapshot}
    body = body_of(PERSISTENT_VOLUME_CLAIMS, metadata["name"], metadata["namespace"], move, spec=found)
    labels = {
        key: value
        for key, value in (metadata.get("labels") or {}).items()
        if not key.partition("/")[0].endswith(_KEPT_DOMAINS_NOT)
    }
    if labels:
        body["metadata"]["labels"] = labels
    return body


def storage_of(claim: Mapping[str, Any]) -> str:
    """Return the size of a claim's volume."""
    capacity = ((claim.get("status") or {}).get("capacity") or {}).get("storage")
    return str(capacity or claim["spec"]["resources"]["requests"]["storage"])


def destination_of(move: str, namespace: str, claim: str, wish: Wish) -> Object:
    """Return VolSync's destination, which writes into the claim in the target."""
    rsync = {"copyMethod": "Direct", "destinationPVC": claim, "serviceType": wish.service_type}
    spec: Object = {"trigger": {"manual": move}, "rsyncTLS": rsync}
    return body_of(DESTINATIONS, name_of(move, claim), namespace, move, spec=spec)


def secret_of(move: str, namespace: str, claim: str, key: str) -> Object:
    """Return the Secret in the source with the key of the destination."""
    return body_of(SECRETS, name_of(move, claim), namespace, move, type="Opaque", data={PSK: key})


def source_of(move: str, namespace: str, claim: str, address: str, port: int | None) -> Object:
    """Return VolSync's source. It reads the volume itself, to which nothing writes meanwhile."""
    rsync: Object = {"keySecret": name_of(move, claim), "address": address, "copyMethod": "Direct"}
    if port is not None:
        rsync["port"] = port
    spec: Object = {"sourcePVC": claim, "trigger": {"manual": move}, "rsyncTLS": rsync}
    return body_of(SOURCES, name_of(move, claim), namespace, move, spec=spec)


def is_synced(replication: Mapping[str, Any] | None, move: str) -> bool:
    """Return whether VolSync has finished the one synchronization that the move asked for."""
    status = (replication or {}).get("status") or {}
    result = (status.get("latestMoverStatus") or {}).get("result")
    return bool(status.get("lastManualSync") == move and result == "Successful")


def error_of(snapshot: Mapping[str, Any]) -> str:
    """Return what a snapshot's controller says is wrong."""
    return str((((snapshot.get("status") or {}).get("error")) or {}).get("message") or "")
