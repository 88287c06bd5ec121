"""Read manifests from files, directories and standard input, and record the origin of each.

YAML with several documents, JSON, and kinds that end in List are read as kubectl reads them. Every error names the
file, the document and the field.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object

_SUFFIXES = (".yaml", ".yml", ".json")
_BYTES_MAX = 64 << 20
"""Limit for one file and for standard input."""


@dataclass(frozen=True, slots=True)
class Document:
    """One manifest; `origin` is `FILE, document N`."""

    origin: str
    manifest: Object


def read_manifests(paths: Iterable[str]) -> list[Document]:
    """Return the manifests of files, directories (not recursive) and `-`; ConfigurationError names what is wrong."""
    documents: list[Document] = []
    for name, text in _read_sources(paths):
        documents += _parse(name, text)
    return documents


def _read_sources(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    for given in paths:
        if given == "-":
            yield "standard input", sys.stdin.read(_BYTES_MAX)
            continue
        path = Path(given)
        if path.is_dir():
            listed = sorted(entry for entry in path.iterdir() if entry.suffix in _SUFFIXES and entry.is_file())
            if not listed:
                raise ConfigurationError(f"-f {given}: no {', '.join(_SUFFIXES)} files in this directory")
        else:
            listed = [path]
        for entry in listed:
            try:
                if entry.stat().st_size > _BYTES_MAX:
                    raise ConfigurationError(f"-f {entry}: larger than {_BYTES_MAX >> 20} MiB")
                yield str(entry), entry.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                raise ConfigurationError(f"-f {entry}: {reason}") from error


def _parse(name: str, text: str) -> Iterator[Document]:
    try:
        loaded = list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        message = " ".join(str(error).replace('in "<unicode string>",', "in").split())
        raise ConfigurationError(f"{name}: {message}") from error
    if all(value is None for value in loaded):
        raise ConfigurationError(f"{name}: contains no manifest")
    for number, value in enumerate(loaded, 1):
        if value is None:
            continue
        origin = f"{name}, document {number}" if len(loaded) > 1 else name
        yield from _flattened(origin, value)


def _flattened(origin: str, value: Any) -> Iterator[Document]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{origin}: a manifest is a mapping, not a {type(value).__name__}")
    kind = _required_string(origin, value, "kind")
    if kind.endswith("List") and isinstance(value.get("items"), list):
        for number, item in enumerate(value["items"], 1):
            yield from _flattened(f"{origin}, item {number}", item)
        return
    _required_string(origin, value, "apiVersion")
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        raise ConfigurationError(f"{origin}: metadata: Required value")
    _required_string(origin, metadata, "name", "metadata.")
    yield Document(origin, value)


def _required_string(origin: str, value: Any, field: str, prefix: str = "") -> str:
    found = value.get(field)
    if not isinstance(found, str) or not found:
        raise ConfigurationError(f"{origin}: {prefix}{field}: Required value: a string")
    return found
