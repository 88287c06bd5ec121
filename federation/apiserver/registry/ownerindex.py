"""An index of owner references by the owner's uid, kept up to date from a stream of changes. Pure.

The state of the garbage collector (`gc.py`): each call takes one stored value and returns the keys to process. Values
are parsed only when they contain owner references or a deletion with one of the collector's finalizers.
"""

from collections.abc import Iterable

from federation.apimachinery.ownerreferences import owner_references
from federation.apiserver.semantics.encoding import encoding

_OWNERS = b'"ownerReferences":['
_DELETED = b'"deletionTimestamp":"'
_FINALIZERS = (b'"foregroundDeletion"', b'"orphan"')


class OwnerIndex:
    """Dependents by owner uid, owners by dependent key."""

    def __init__(self) -> None:
        self._dependents: dict[str, set[str]] = {}
        self._owners: dict[str, tuple[str, ...]] = {}
        self._waiting: dict[str, str] = {}
        """Owners in foreground deletion: uid to key."""

    def record(self, key: str, value: bytes) -> Iterable[str]:
        """Record a written object; return the keys to process."""
        owners: tuple[str, ...] = ()
        is_ending = _DELETED in value and any(name in value for name in _FINALIZERS)
        if _OWNERS in value or is_ending:
            metadata = encoding.decode_metadata(value)
            owners = tuple(owner["uid"] for owner in owner_references(metadata))
            is_ending = is_ending and bool(metadata.get("deletionTimestamp"))
            if is_ending and "foregroundDeletion" in (metadata.get("finalizers") or ()):
                self._waiting[metadata["uid"]] = key
        old = self._owners.get(key, ())
        if owners == old:
            return (key,) if is_ending else ()
        self._relink(key, old, owners)
        return {key, *self._waiting_among(old)}

    def remove(self, key: str, value: bytes) -> Iterable[str]:
        """Remove an object; return its dependents and the owners that waited for it."""
        uid = encoding.read_revision_and_uid(value).uid
        old = self._owners.get(key, ())
        self._relink(key, old, ())
        self._waiting.pop(uid, None)
        return {*self._dependents.get(uid, ()), *self._waiting_among(old)}

    def dependents(self, uid: str) -> list[str]:
        """Return the keys of the objects that name `uid` as an owner, in order."""
        return sorted(self._dependents.get(uid, ()))

    def waiting_owners(self, key: str) -> list[str]:
        """Return the keys of an object's owners that are in foreground deletion."""
        return self._waiting_among(self._owners.get(key, ()))

    def _relink(self, key: str, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        for uid in old:
            linked = self._dependents.get(uid)
            if linked is not None:
                linked.discard(key)
                if not linked:
                    del self._dependents[uid]
        for uid in new:
            self._dependents.setdefault(uid, set()).add(key)
        if new:
            self._owners[key] = new
        else:
            self._owners.pop(key, None)

    def _waiting_among(self, uids: tuple[str, ...]) -> list[str]:
        return [self._waiting[uid] for uid in uids if uid in self._waiting]
