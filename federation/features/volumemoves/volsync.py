"""Copy volumes by VolSync, between any two clusters that reach each other.

The target gets an empty claim and a ReplicationDestination, which says where it listens and with which key. The source
gets the key and a ReplicationSource, which sends the volume once.
"""

from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, SECRETS, Object
from federation.features.volumemoves.rules import objects
from federation.features.volumemoves.rules.moverecord import VolumeMove, Wish
from federation.features.volumemoves.rules.objects import DESTINATIONS, SOURCES
from federation.features.volumemoves.site import Site


async def copy_claim(move: VolumeMove, wish: Wish, source: Site, target: Site, claim: Object) -> str:
    """Take the next steps for one claim; return what is missing, "" when its copy is complete."""
    name, namespace = claim["metadata"]["name"], source.namespace
    await target.ensure(PERSISTENT_VOLUME_CLAIMS, objects.claim_like(claim, move.id, wish))
    destination = await target.ensure(DESTINATIONS, objects.destination_of(move.id, namespace, name, wish))
    listens = (destination.get("status") or {}).get("rsyncTLS") or {}
    if not (listens.get("address") and listens.get("keySecret")):
        return f"VolSync in {target.cluster} does not listen yet"
    secret = await target.get(SECRETS, str(listens["keySecret"]))
    key = ((secret or {}).get("data") or {}).get(objects.PSK)
    if not key:
        return f"the key of VolSync in {target.cluster} does not exist yet"
    await source.ensure(SECRETS, objects.secret_of(move.id, namespace, name, str(key)))
    body = objects.source_of(move.id, namespace, name, str(listens["address"]), listens.get("port"))
    sender = await source.ensure(SOURCES, body)
    if sender["spec"]["rsyncTLS"].get("address") != body["spec"]["rsyncTLS"]["address"]:
        await source.remove(SOURCES, objects.name_of(move.id, name))  # the destination listens elsewhere now
        return f"VolSync in {target.cluster} has another address now"
    for site, found in ((source, sender), (target, destination)):
        if not objects.is_synced(found, move.id):
            return _describe(site, found)
    return ""


async def verify_claim(move: VolumeMove, source: Site, target: Site, claim: Object) -> str:
    """Return what is wrong with the copy of one claim, "" if nothing is."""
    name = claim["metadata"]["name"]
    found = await source.get(SOURCES, objects.name_of(move.id, name))
    received = await target.get(DESTINATIONS, objects.name_of(move.id, name))
    if not (objects.is_synced(found, move.id) and objects.is_synced(received, move.id)):
        return "its replication is gone, or was repeated"
    copied = await target.get(PERSISTENT_VOLUME_CLAIMS, name)
    if copied is None or not objects.is_of(copied, move.id):
        return f"its copy in {target.cluster} is gone"
    return "" if (copied.get("status") or {}).get("phase") == "Bound" else f"its copy in {target.cluster} is not bound"


async def clean(move: VolumeMove, site: Site) -> bool:
    """Remove both ends of all replications; return whether none is left."""
    gone = []
    for claim in move.claims:
        name = objects.name_of(move.id, claim)
        try:
            gone += [await site.remove(SOURCES, name), await site.remove(DESTINATIONS, name)]
        except NotFound:  # the kind is not served any more
            continue
        gone.append(await site.remove(SECRETS, name))
    return all(gone)


def _describe(site: Site, replication: Object) -> str:
    status = (replication.get("status") or {}).get("latestMoverStatus") or {}
    text = f"VolSync in {site.cluster} is not done"
    if status.get("result") != "Failed":
        return text
    return f"{text}, its last try failed: {str(status.get('logs') or '')[-200:]}"
