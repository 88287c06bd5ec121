"""Keys for tests of encryption at rest."""

from pathlib import Path

from federation.apiserver.store.encryptionkeys import EncryptionKey, EncryptionOptions, format_keys

PREFIXES = ("/core/secrets/", "decision/")


def a_key(name: str) -> EncryptionKey:
    """Return a key whose bytes depend on its name only."""
    return EncryptionKey(name, name.encode().ljust(32, b"."))


def write_keys(path: Path, *names: str) -> EncryptionOptions:
    """Write a key file, first key first, and return the options that use it."""
    path.unlink(missing_ok=True)
    path.touch(0o600)
    path.write_text(format_keys([a_key(name) for name in names]))
    return EncryptionOptions(key_file=path, prefixes=PREFIXES)
