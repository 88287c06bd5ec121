"""Static bearer tokens in a file: SHA-256 of the token → user, uid and groups. The file never holds a token itself.

A server refuses to start with a malformed file. If the file becomes malformed while the server runs, the tokens of the
last valid content stay in use, as with other credentials that are read again, and one line is logged per change.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import structlog

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.auth.identity import User
from federation.apiserver.auth.pki import write_private

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class TokenFile:
    """A JSON file of mode 0600. It is read again when it was replaced."""

    path: Path
    _users: dict[str, User] = field(default_factory=dict)
    _loaded_mtime_ns: int = -1

    def load(self) -> None:
        """Read the file if it was replaced; ConfigurationError names what is wrong with it."""
        mtime_ns = self._mtime_ns()
        if mtime_ns == self._loaded_mtime_ns:
            return
        # Before reading, so that a malformed file is reported once.
        self._loaded_mtime_ns = mtime_ns
        if not mtime_ns:
            self._users = {}
            return
        try:
            self._users = _parse(self.path.read_bytes())
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{self.path} is not a token file: {error}; restore it, or remove it to have no static tokens"
            ) from error

    def add(self, *, user: str, groups: Sequence[str] = (), uid: str = "") -> str:
        """Create a token for a user, store its hash and return the token. It cannot be read from the file later."""
        self.load()
        token = secrets.token_urlsafe(32)
        self._users[_hash(token)] = User(user, tuple(groups), uid)
        entries = {
            digest: {"user": entry.name, "uid": entry.uid, "groups": list(entry.groups)}
            for digest, entry in self._users.items()
        }
        write_private(self.path, orjson.dumps({"tokens": entries}, option=orjson.OPT_INDENT_2))
        self._loaded_mtime_ns = self._mtime_ns()
        return token

    def find(self, token: str) -> User | None:
        """Return the user of a token, None when the token is unknown."""
        try:
            self.load()
        except ConfigurationError as error:
            _log.error("the tokens read before stay in use", reason=str(error))
        digest = _hash(token)
        # Compare in constant time with every entry: response times reveal nothing about stored hashes.
        for known, user in self._users.items():
            if hmac.compare_digest(known, digest):
                groups = tuple(dict.fromkeys((*user.groups, AUTHENTICATED)))
                return User(user.name, groups, user.uid)
        return None

    def _mtime_ns(self) -> int:
        try:
            return os.stat(self.path).st_mtime_ns  # noqa: PTH116  # hot enough to skip pathlib
        except OSError:
            return 0


def _parse(data: bytes) -> dict[str, User]:
    """Return the users by the hash of their token; ValueError for another shape."""
    content = orjson.loads(data)
    entries = content.get("tokens") if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise ValueError('it must be {"tokens": {…}}')  # noqa: TRY004  # bad data in a file, not a bad call
    return {digest: _to_user(digest, entry) for digest, entry in entries.items()}


def _to_user(digest: str, entry: Any) -> User:
    fields = entry if isinstance(entry, dict) else {}
    name, uid, groups = fields.get("user"), fields.get("uid", ""), fields.get("groups", [])
    if not isinstance(name, str) or not name or not isinstance(uid, str):
        raise ValueError(f"the token {digest[:8]}… has no user, or its uid is not a text")
    has_groups = isinstance(groups, list) and all(isinstance(group, str) for group in groups)
    if not has_groups:
        raise ValueError(f"the groups of the token {digest[:8]}… are not a list of texts")
    if not digest.isascii():
        raise ValueError("the hash of a token is not ASCII")
    return User(name, tuple(groups), uid)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
