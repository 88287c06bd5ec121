"""Keys that all servers over one database share, so that a token or certificate of one is valid at every other.

They are in a Secret of that database. The first server stores its own there; a later one takes them over before it
makes any. Certificates of a single server, such as its serving certificate, are its own, issued by the shared CA.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from federation.apimachinery.errors import AlreadyExists, ConfigurationError, NotFound
from federation.apimachinery.resources import SECRETS, Object
from federation.apiserver.auth.pki import CA_CERTIFICATE, CA_KEY, TOKEN_KEY, write_private
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import WriteOptions

_FOLDER = "front-proxy"
FILES: Mapping[str, str] = {
    CA_CERTIFICATE: CA_CERTIFICATE,
    CA_KEY: CA_KEY,
    TOKEN_KEY: TOKEN_KEY,
    f"{_FOLDER}-{CA_CERTIFICATE}": f"{_FOLDER}/{CA_CERTIFICATE}",
    f"{_FOLDER}-{CA_KEY}": f"{_FOLDER}/{CA_KEY}",
}
"""The Secret's keys, and the files in the folder of the keys."""


@dataclass(frozen=True, slots=True)
class KeySecret:
    """The Secret with the shared keys."""

    namespace: str
    name: str


async def take_over(registry: Registry, secret: KeySecret, directory: Path) -> bool:
    """Write the shared keys into `directory`; False when there are none yet.

    ConfigurationError if the directory holds other keys: a server with its own keys cannot join the others.
    """
    info = registry.kinds.lookup("", "v1", SECRETS.plural)
    try:
        stored: Object = orjson.loads(await registry.get(info, secret.namespace, secret.name))
    except NotFound:
        return False
    data = stored.get("data") or {}
    if missing := sorted(FILES.keys() - data.keys()):
        raise ConfigurationError(
            f"Secret {secret.namespace}/{secret.name} lacks {', '.join(missing)}; restore it, or remove it so that this"
            " server stores its own keys"
        )
    for key, path in FILES.items():
        _write(directory / path, base64.b64decode(data[key]), directory, is_key=path.endswith(".key"))
    return True


def _write(file: Path, content: bytes, directory: Path, *, is_key: bool) -> None:
    if file.exists():
        if file.read_bytes() == content or not is_key:
            return  # a CA certificate may have been renewed here with the same key
        raise ConfigurationError(
            f"{file} is not the key that the servers of this database share; to join them, start with a folder"
            f" without keys: move {directory} away"
        )
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_private(file, content, mode=0o600 if is_key else 0o644)


async def publish(registry: Registry, secret: KeySecret, directory: Path) -> bool:
    """Store the keys of `directory` for other servers; False if another server was faster."""
    info = registry.kinds.lookup("", "v1", SECRETS.plural)
    data = {key: base64.b64encode((directory / path).read_bytes()).decode() for key, path in FILES.items()}
    obj = {"metadata": {"name": secret.name}, "type": "Opaque", "data": data}
    try:
        await registry.create(info, secret.namespace, obj, WriteOptions(field_manager="federation-apiserver"))
    except AlreadyExists:
        return False
    return True
