"""Static bearer tokens in a file: SHA-256 of the token → user, uid and groups. The file never holds a token itself."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.identity import AUTHENTICATED, User
from federation.apiserver.auth.pki import write_private


@dataclass(slots=True)
class TokenFile:
    """A JSON file of mode 0600. It is read again when it was replaced."""

    path: Path
    _users: dict[str, User] = field(default_factory=dict)
    _loaded_mtime_ns: int = -1

    def add(self, *, user: str, groups: Sequence[str] = (), uid: str = "") -> str:
        """Create a token for a user, store its hash and return the token. It cannot be read from the file later."""
        self._load()
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
        self._load()
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

    def _load(self) -> None:
        mtime_ns = self._mtime_ns()
        if mtime_ns == self._loaded_mtime_ns:
            return
        users: dict[str, User] = {}
        if mtime_ns:
            try:
                entries = orjson.loads(self.path.read_bytes())["tokens"]
                users = {d: User(e["user"], tuple(e["groups"]), e.get("uid", "")) for d, e in entries.items()}
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise ConfigurationError(f"{self.path} is not a token file: {error}") from error
        self._users, self._loaded_mtime_ns = users, mtime_ns


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
