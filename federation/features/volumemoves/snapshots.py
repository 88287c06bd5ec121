"""Copy volumes by CSI snapshots, between clusters that use the same storage.

A VolumeSnapshot exists in one cluster. What both clusters can name is the snapshot in the storage, by its handle: the
target gets a VolumeSnapshotContent with the handle of the source's, and claims that begin with it.
"""

from collections.abc import Mapping

from federation.apimachinery.errors import InvalidInput, NotFound
from federation.apimachinery.quantity import to_int_ceil
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, Object
from federation.features.volumemoves.rules import objects
from federation.features.volumemoves.rules.moverecord import VolumeMove, Wish
from federation.features.volumemoves.rules.objects import CONTENTS, SNAPSHOTS
from federation.features.volumemoves.site import Site


async def copy_claim(move: VolumeMove, wish: Wish, source: Site, target: Site, claim: Object) -> str:
    """Take the next steps for one claim; return what is missing, "" when its copy is complete."""
    name, namespace = claim["metadata"]["name"], source.namespace
    snapshot = await source.ensure(SNAPSHOTS, objects.snapshot_of_claim(move.id, namespace, name, wish))
    if not _is_ready(snapshot):
        return _describe("its snapshot is not ready", source, snapshot)
    content = await source.get(CONTENTS, str(snapshot["status"].get("boundVolumeSnapshotContentName")))
    if content is None or not (content.get("status") or {}).get("snapshotHandle"):
        return f"its snapshot in {source.cluster} has no handle"
    await target.ensure(CONTENTS, objects.content_of_handle(move.id, namespace, name, content))
    restored = await target.ensure(SNAPSHOTS, objects.snapshot_of_content(move.id, namespace, name))
    if not _is_ready(restored):
        return _describe(f"the snapshot of {source.cluster} is not found in the storage", target, restored)
    body = objects.claim_like(claim, move.id, wish, snapshot=objects.name_of(move.id, name))
    copied = await target.ensure(PERSISTENT_VOLUME_CLAIMS, body)
    return await _incomplete(target, copied)


async def verify_claim(move: VolumeMove, source: Site, target: Site, claim: Object) -> str:
    """Return what is wrong with the copy of one claim, "" if nothing is."""
    name = claim["metadata"]["name"]
    at_source = await source.get(SNAPSHOTS, objects.name_of(move.id, name))
    at_target = await target.get(SNAPSHOTS, objects.name_of(move.id, name))
    copied = await target.get(PERSISTENT_VOLUME_CLAIMS, name)
    if at_source is None or at_target is None or not (_is_ready(at_source) and _is_ready(at_target)):
        return "its snapshot is gone, or not ready"
    sizes = {str(size) for each in (at_source, at_target) if (size := each["status"].get("restoreSize"))}
    if len({to_int_ceil(size) for size in sizes}) > 1:
        return f"its snapshots have the sizes {' and '.join(sorted(sizes))}"
    if copied is None or not objects.is_of(copied, move.id):
        return f"its copy in {target.cluster} is gone"
    if ((copied["spec"].get("dataSource")) or {}).get("name") != objects.name_of(move.id, name):
        return f"its copy in {target.cluster} does not begin with the snapshot"
    return await _incomplete(target, copied)


async def clean(move: VolumeMove, site: Site) -> bool:
    """Remove snapshots and their contents; return whether none is left."""
    gone = []
    for claim in move.claims:
        try:
            gone.append(await site.remove(SNAPSHOTS, objects.name_of(move.id, claim)))
            gone.append(await site.remove(CONTENTS, objects.content_name(move.id, site.namespace, claim)))
        except NotFound:  # the kind is not served any more
            continue
    return all(gone)


async def problem_of(wish: Wish, source: Site, target: Site, claim: Object) -> str:
    """Return why the snapshots of a claim's class cannot be used in the target: another driver."""
    name = claim["spec"].get("storageClassName")
    if not name:
        return ""
    wanted = wish.storage_classes.get(name, name)
    drivers = [
        (await site.get(STORAGE_CLASSES, each) or {}).get("provisioner")
        for site, each in ((source, name), (target, wanted))
    ]
    if None in drivers or drivers[0] == drivers[1]:
        return ""
    return f"snapshots of {drivers[0]} in {source.cluster} cannot be read by {drivers[1]} in {target.cluster}"


async def _incomplete(target: Site, claim: Object) -> str:
    """Return why a restored claim does not count as complete yet; one that waits for its first pod does."""
    if (claim.get("status") or {}).get("phase") == "Bound":
        return ""
    if (claim.get("status") or {}).get("phase") == "Lost":
        raise InvalidInput(f"the copy of {claim['metadata']['name']} in {target.cluster} has lost its volume")
    storage_class = await target.get(STORAGE_CLASSES, claim["spec"].get("storageClassName") or "")
    if (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer":
        return ""
    return f"its copy in {target.cluster} is not bound"


def _is_ready(snapshot: Mapping[str, object]) -> bool:
    status = snapshot.get("status")
    return isinstance(status, dict) and status.get("readyToUse") is True


def _describe(text: str, site: Site, snapshot: Object) -> str:
    error = objects.error_of(snapshot)
    return f"{text} in {site.cluster}" + (f": {error}" if error else "")
