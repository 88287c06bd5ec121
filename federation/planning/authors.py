"""Record the authors of wishes, as whom the control plane writes: an annotation that only admission sets. Pure.

A wish is the spec of an object from which the control plane makes others. Its parts are the fields of the spec and the
items of its lists, known by their hashes. The record has an entry for each user whose parts are still there, the latest
writer last. What the control plane writes for the wish is written as the latest author, and every other one must be
admitted as well (`runtime/onbehalf.py`, `rendering/verdicts.py`). Parts that were stored without a record have no
author.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.resources import UserInfo

AUTHORS_MAX = 32
"""Authors of one wish, and of all that is in one overridden object: each is a dry run on the host."""
_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""In extra: differs between tokens of one user."""
_DIGEST_BYTES = 10


def authors_of(wish: Mapping[str, Any]) -> list[UserInfo]:
    """Return the recorded authors of an object, the latest writer last; [] for an object without a record."""
    return [entry["user"] for entry in _entries(wish)]


def record(obj: Mapping[str, Any], old: Mapping[str, Any] | None, user: UserInfo) -> str | None:
    """Return the annotation for an object that a user writes over `old`, None for no record.

    A write that changes no part changes no record. A user who changes a part becomes its author. An earlier author
    stays as long as one of his parts does, or while it is unknown whose a part of `old` was.
    """
    before = _entries(old or {})
    parts, parts_before = _parts(obj), _parts(old or {})
    changed = parts - parts_before
    if old is not None and parts == parts_before:
        return _annotations(old).get(names.AUTHORS)
    known = {part for entry in before for part in entry["wrote"]}
    is_open = bool((parts & parts_before) - known)
    author = _identity(user)
    entries = []
    own = set(changed)
    for entry in before:
        kept = parts.intersection(entry["wrote"]) - changed
        if entry["user"] == author:
            own |= kept
        elif kept or is_open:
            entries.append({"user": entry["user"], "wrote": sorted(kept)})
    if own or not entries:
        entries.append({"user": author, "wrote": sorted(own)})
    return orjson.dumps(entries).decode()


def to_annotation(users: Iterable[UserInfo]) -> str | None:
    """Return the users as the value of an annotation, each once, None for none."""
    distinct = {orjson.dumps(user, option=orjson.OPT_SORT_KEYS): user for user in users}
    return orjson.dumps([distinct[key] for key in sorted(distinct)]).decode() if distinct else None


def override_authors(federated: Mapping[str, Any]) -> list[UserInfo]:
    """Return the authors of the policies behind the overrides of a federated object."""
    return [user for user in _listed(_annotations(federated).get(names.OVERRIDE_AUTHORS)) if _is_user(user)]


def _entries(wish: Mapping[str, Any]) -> list[Any]:
    """Return the record, without what is malformed: users could write the annotation before it meant something."""
    entries = [each for each in _listed(_annotations(wish).get(names.AUTHORS)) if isinstance(each, dict)]
    return [each for each in entries if _is_user(each.get("user")) and isinstance(each.get("wrote"), list)]


def _listed(text: Any) -> list[Any]:
    try:
        found = orjson.loads(text) if isinstance(text, str) else []
    except orjson.JSONDecodeError:
        return []
    return found if isinstance(found, list) else []


def _is_user(user: Any) -> bool:
    return isinstance(user, dict) and isinstance(user.get("username"), str) and isinstance(user.get("groups"), list)


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def _parts(obj: Mapping[str, Any]) -> set[str]:
    spec = obj.get("spec")
    found: set[str] = set()
    for field, value in spec.items() if isinstance(spec, Mapping) else ():
        found.update(_part(field, each) for each in (value if isinstance(value, list) else [value]))
    return found


def _part(field: str, value: Any) -> str:
    return blake2b(orjson.dumps([field, value], option=orjson.OPT_SORT_KEYS), digest_size=_DIGEST_BYTES).hexdigest()


def _identity(user: UserInfo) -> dict[str, Any]:
    extra = {key: list(values) for key, values in (user.get("extra") or {}).items() if key != _CREDENTIAL_ID}
    info: dict[str, Any] = {"username": user.get("username", ""), "groups": list(user.get("groups") or ())}
    if uid := user.get("uid"):
        info["uid"] = uid
    return {**info, "extra": extra} if extra else info
