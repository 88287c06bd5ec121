"""Who depends on whom: an index of owner references by the owner's uid, kept from a stream of changes.

Pure bookkeeping for `gc.py`: each call takes one stored value and answers with the keys that deserve a look. Bytes are
parsed only when they mention what matters.
"""

from collections.abc import Iterable

from federation.registry import encoding

_OWNERS = b'"ownerReferences":['
_DELETED = b'"deletionTimestamp":"'
_FINALIZERS = (b'"foregroundDeletion"', b'"orphan"')


class OwnershipIndex:
    """Dependents by owner uid, owners by dependent key."""

    def __init__(self) -> None:
        self._dependents: dict[str, set[str]] = {}
        self._owners: dict[str, tuple[str, ...]] = {}
        self._waiting: dict[str, str] = {}
        """Owners in foreground deletion: uid to key."""

    def note(self, key: str, value: bytes) -> Iterable[str]:
        """Take a written object; return keys to look at."""
        owners: tuple[str, ...] = ()
        is_ending = _DELETED in value and any(name in value for name in _FINALIZERS)
        if _OWNERS in value or is_ending:
            metadata = encoding.metadata_of(value)
            owners = tuple(owner["uid"] for owner in metadata.get("ownerReferences") or ())
            is_ending = is_ending and bool(metadata.get("deletionTimestamp"))
            if is_ending and "foregroundDeletion" in (metadata.get("finalizers") or ()):
                self._waiting[metadata["uid"]] = key
        before = self._owners.get(key, ())
        if owners == before:
            return (key,) if is_ending else ()
        self._relink(key, before, owners)
        return {key, *self._waiting_among(before)}

    def forget(self, key: str, value: bytes) -> Iterable[str]:
        """Take a removed object; return its dependents, and owners that waited for it."""
        uid = encoding.position(value).uid
        before = self._owners.get(key, ())
        self._relink(key, before, ())
        self._waiting.pop(uid, None)
        return {*self._dependents.get(uid, ()), *self._waiting_among(before)}

    def dependents(self, uid: str) -> list[str]:
        """Return the keys of the objects that name `uid` as an owner, in order."""
        return sorted(self._dependents.get(uid, ()))

    def waiting_owners(self, key: str) -> list[str]:
        """Return the keys of an object's owners that are in foreground deletion."""
        return self._waiting_among(self._owners.get(key, ()))

    def _relink(self, key: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        for uid in before:
            linked = self._dependents.get(uid)
            if linked is not None:
                linked.discard(key)
                if not linked:
                    del self._dependents[uid]
        for uid in after:
            self._dependents.setdefault(uid, set()).add(key)
        if after:
            self._owners[key] = after
        else:
            self._owners.pop(key, None)

    def _waiting_among(self, uids: tuple[str, ...]) -> list[str]:
        return [self._waiting[uid] for uid in uids if uid in self._waiting]
