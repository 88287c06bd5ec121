"""Reads the fields of a manifest, and notes those that were not read. Pure.

A converter reads what it converts. Then `finish()` notes the rest, so a field that a converter does not know, because
it is new or misspelled, is reported like one that has no counterpart. A field of the wrong type is an error.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from federation.apimachinery.errors import ConfigurationError
from federation.features.convert.rules.model import Note

_NO_COUNTERPART = "has no counterpart and is left out"
_WORDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
}


def to_title(manifest: Mapping[str, Any]) -> str:
    """Return "Kind namespace/name" of the manifest, or "Kind name" without a namespace."""
    metadata = manifest.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}
    name = "/".join(str(part) for part in (known.get("namespace"), known.get("name")) if part)
    return " ".join(filter(None, (str(manifest.get("kind") or ""), name)))


class FieldReader:
    """Fields of one mapping in a manifest. Readers of one manifest share its title and its list of notes."""

    def __init__(self, value: Mapping[str, Any], title: str, notes: list[Note], path: str = "") -> None:
        self._value = value
        self._title = title
        self._notes = notes
        self._path = path
        self._read: set[str] = set()
        self._readers: list[FieldReader] = []

    def __bool__(self) -> bool:
        """Return whether the mapping has any field."""
        return bool(self._value)

    def has(self, key: str) -> bool:
        """Return whether the field is present; it does not count as read."""
        return self._value.get(key) is not None

    def keys(self) -> list[str]:
        """Return the names of the fields, for mappings whose keys are data."""
        return list(self._value)

    def any(self, key: str) -> Any:
        """Return the value with all that is below it; None if it is absent."""
        self._read.add(key)
        return self._value.get(key)

    def text(self, key: str, default: str = "") -> str:
        """Return a text."""
        value: str = self._typed(key, str, default)
        return value

    def one_of(self, key: str, allowed: tuple[str, ...], default: str = "") -> str:
        """Return one of the allowed texts, or the default if the field is absent and there is one."""
        value = self.text(key) or default
        if value not in allowed:
            raise self.refuse(key, f"{value!r} is none of {', '.join(allowed)}; correct the manifest")
        return value

    def number(self, key: str, default: int | None = None) -> int | None:
        """Return a whole number."""
        value: int | None = self._typed(key, int, default)
        return value

    def flag(self, key: str) -> bool:
        """Return whether the field is true."""
        return bool(self._typed(key, bool, default=False))

    def texts(self, key: str) -> list[str]:
        """Return a list of texts."""
        values: list[str] = self._typed(key, list, [])
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise self._wrong(f"{key}[{index}]", str)
        return values

    def text_map(self, key: str) -> dict[str, str]:
        """Return a mapping of texts to texts."""
        values: dict[str, str] = self._typed(key, dict, {})
        for name, value in values.items():
            if not isinstance(value, str):
                raise self._wrong(f"{key}.{name}", str)
        return values

    def child(self, key: str) -> Self:
        """Return a reader of the mapping; one without fields if it is absent."""
        return self._reader(self._typed(key, dict, {}), key)

    def children(self, key: str) -> list[Self]:
        """Return readers of the mappings in the list."""
        readers = []
        for index, value in enumerate(self._typed(key, list, [])):
            if not isinstance(value, dict):
                raise self._wrong(f"{key}[{index}]", dict)
            readers.append(self._reader(value, f"{key}[{index}]"))
        return readers

    def note(self, key: str, message: str) -> None:
        """Note the difference that the field makes; "" stands for the mapping itself."""
        self._notes.append(Note(self._title, self._at(key), message))

    def drop(self, key: str, message: str, *, unless: Iterable[Any] = ()) -> None:
        """Leave out the field, with a note unless it is absent or has one of the values, which mean the same here."""
        value = self.any(key)
        if value is not None and value not in tuple(unless):
            self.note(key, message)

    def finish(self) -> None:
        """Note every field that was not read, here and below."""
        for key, value in self._value.items():
            if key not in self._read and value not in (None, {}, []):
                self.note(key, _NO_COUNTERPART)
        for reader in self._readers:
            reader.finish()

    def refuse(self, key: str, message: str) -> ConfigurationError:
        """Return the error that the field cannot be used."""
        return ConfigurationError(f"{self._title}: {self._at(key)}: {message}")

    def _reader(self, value: dict[str, Any], key: str) -> Self:
        reader = type(self)(value, self._title, self._notes, self._at(key))
        self._readers.append(reader)
        return reader

    def _typed(self, key: str, wanted: type, default: Any) -> Any:
        value = self.any(key)
        if value is None:
            return default
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise self._wrong(key, wanted)
        return value

    def _wrong(self, key: str, wanted: type) -> ConfigurationError:
        return self.refuse(key, f"must be {_WORDS[wanted]}; correct the manifest")

    def _at(self, key: str) -> str:
        return ".".join(filter(None, (self._path, key)))
