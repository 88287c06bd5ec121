"""Deletions by controllers that may be late: they must not reach objects that have the name of the deleted ones.

Several processes on one database, or one that was stopped for a while, act on what they have seen. An object is
therefore deleted or changed by uid.
"""

from federation.apimachinery.errors import NotFound, ValueDamaged
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.store.interface import Entry, Store
from federation.apiserver.verbs.requestoptions import DeleteOptions
from federation.apiserver.verbs.writes import Change


async def is_same(store: Store, key: str, uid: str) -> bool:
    """Return whether the key has the object with this uid, or none for ""."""
    try:
        entry = await store.get(key)
    except ValueDamaged:
        return False
    return (encoding.read_revision_and_uid(entry.value).uid if entry is not None else "") == uid


def precondition(entry: Entry, *, propagation_policy: str = "") -> DeleteOptions:
    """Return the options that delete exactly this object; a damaged one has no uid and is deleted by name."""
    uid = encoding.read_revision_and_uid(entry.value).uid if entry.value else ""
    return DeleteOptions(propagation_policy=propagation_policy, uid=uid)


def same_uid(uid: str, change: Change) -> Change:
    """Return the change with a check before it: NotFound for an object with another uid."""

    def changed(live: Object) -> tuple[Object, bool]:
        if live["metadata"]["uid"] != uid:
            raise NotFound(f"{live['metadata']['name']} is another object now")
        return change(live)

    return changed
