"""Manifests in text, and the origin of each.

YAML with several documents, JSON, and kinds that end in List are read as kubectl reads them. Every error names the
origin, the document and the field, and the line where the text is not YAML.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object


@dataclass(frozen=True, slots=True)
class Document:
    """One manifest; `origin` is `FILE, document N`."""

    origin: str
    manifest: Object


def parse_manifests(name: str, text: str) -> Iterator[Document]:
    """Yield the manifests of a text; `name` begins every origin. ConfigurationError names what is wrong."""
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
