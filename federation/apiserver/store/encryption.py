"""Encryption of stored values: plain bytes above, AES-256-GCM in SQL, like kube-apiserver's envelope encryption.

    marker | length and ID of the key | nonce and wrapped data key | nonce | ciphertext and tag

A data key is made at every start and wrapped by the first configured key. The name of the value (for the store: its
key) is authenticated, so a value that was copied to another name does not decrypt. Values without the marker are plain:
they were written before encryption was enabled. Values are encrypted whose name has a configured prefix, or whose
content the options call secret. The watch cache holds plain bytes, so reads cost nothing. `encryptionkeys.py` loads the
keys, `reencryption.py` encrypts old values.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from prometheus_client import Gauge

from federation.apimachinery.errors import StoreUnavailable
from federation.apiserver.store.encryptionkeys import KEY_BYTES, EncryptionKey, EncryptionOptions, load_keys

_enabled = Gauge("federation_store_encryption_enabled", "1 if stored Secrets are encrypted, 0 if they are plain")

MARKER = b"\0enc1"
"""No plain value starts with it: they are JSON."""

_NONCE_BYTES = 12
_WRAPPED_BYTES = _NONCE_BYTES + KEY_BYTES + 16
_DATA_KEYS_MAX = 1_000
"""Unwrapped data keys in memory: one per start whose values are still stored. Unwrapping costs some microseconds."""


class ValueCipher:
    """Encrypts and decrypts the values of one store. It encrypts nothing before `open`, and nothing without keys."""

    def __init__(self, options: EncryptionOptions | None = None) -> None:
        self.options = options or EncryptionOptions()
        self._prefixes = self.options.prefixes
        self._keys: dict[str, EncryptionKey] = {}
        self._first: EncryptionKey | None = None
        self._header = b""
        self._data_key: AESGCM | None = None
        self._writes = 0
        self._data_keys: dict[bytes, AESGCM] = {}

    async def open(self) -> None:
        """Load the keys; ConfigurationError. A second call does nothing."""
        if self._first is None:
            keys = await load_keys(self.options)
            self._keys = {key.id: key for key in keys}
            self._first = keys[0] if keys else None
        _enabled.set(self.is_enabled)

    @property
    def is_enabled(self) -> bool:
        """Whether values are encrypted."""
        return self._first is not None

    def warnings(self) -> list[str]:
        """Return a line for the administrator if values that should be encrypted are not."""
        if self._first is not None or not self._prefixes:
            return []
        return ["encryption at rest is off: Secrets are stored as plain text; see fedctl encryption-key"]

    def encrypt(self, name: str, value: bytes) -> bytes:
        """Return the bytes to store: encrypted for a name with one of the prefixes, and for secret content."""
        if self._first is None or not self._must_encrypt(name, value):
            return value
        if self._data_key is None or self._writes >= self.options.writes_per_data_key_max:
            self._renew_data_key(self._first)
        assert self._data_key is not None
        self._writes += 1
        nonce = os.urandom(_NONCE_BYTES)
        return b"".join((self._header, nonce, self._data_key.encrypt(nonce, value, name.encode())))

    def decrypt(self, name: str, stored: bytes) -> bytes:
        """Return the plain value; StoreUnavailable names the key that is missing, or the value that was changed."""
        if not stored.startswith(MARKER):
            return stored
        start = _header_bytes(stored)
        nonce, encrypted = stored[start : start + _NONCE_BYTES], stored[start + _NONCE_BYTES :]
        try:
            return self._unwrap(name, stored[:start]).decrypt(nonce, encrypted, name.encode())
        except (InvalidTag, ValueError) as error:
            raise StoreUnavailable(
                f"the stored value of {name} does not decrypt: it was changed, or its key has another content; restore "
                "the key or a backup"
            ) from error

    def is_current(self, name: str, stored: bytes) -> bool:
        """Return whether the stored value has the form that `encrypt` gives it now."""
        if self._first is None:
            return True
        if stored.startswith(MARKER):
            return _key_id(stored) == self._first.id
        return not self._must_encrypt(name, stored)

    def _must_encrypt(self, name: str, value: bytes) -> bool:
        return name.startswith(self._prefixes) or self.options.is_secret(value)

    def _renew_data_key(self, key: EncryptionKey) -> None:
        data_key, nonce = os.urandom(KEY_BYTES), os.urandom(_NONCE_BYTES)
        prologue = MARKER + bytes([len(key.id)]) + key.id.encode()
        self._header = prologue + nonce + AESGCM(key.secret).encrypt(nonce, data_key, prologue)
        self._data_key = AESGCM(data_key)
        self._writes = 0

    def _unwrap(self, name: str, header: bytes) -> AESGCM:
        known = self._data_keys.get(header)
        if known is not None:
            return known
        key = self._keys.get(_key_id(header))
        if key is None:
            raise StoreUnavailable(
                f"the stored value of {name} is encrypted with key {_key_id(header)!r}, which is not configured; add "
                "it to the text of --encryption-key-file or --encryption-key-command"
            )
        prologue, wrapped = header[:-_WRAPPED_BYTES], header[-_WRAPPED_BYTES:]
        data_key = AESGCM(AESGCM(key.secret).decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], prologue))
        if len(self._data_keys) >= _DATA_KEYS_MAX:
            self._data_keys.clear()
        self._data_keys[header] = data_key
        return data_key


def _header_bytes(stored: bytes) -> int:
    length = stored[len(MARKER)] if len(stored) > len(MARKER) else 0
    return len(MARKER) + 1 + length + _WRAPPED_BYTES


def _key_id(stored: bytes) -> str:
    start = len(MARKER) + 1
    length = stored[len(MARKER)] if len(stored) > len(MARKER) else 0
    return stored[start : start + length].decode("ascii", "replace")
