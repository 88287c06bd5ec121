"""Manifests in text, and the origin of each.

YAML with several documents, JSON, and kinds that end in List are read as kubectl reads them, and as safely as the API
server reads bodies. Every error names the origin, the document and the field, and the line where the text is not YAML.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.errors import BadRequest, ConfigurationError
from federation.apimachinery.nameformats import path_segment
from federation.apimachinery.resources import Object
from federation.apiserver.http.decoding import decode_yaml

_MARKER = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_LINE = re.compile(r"line (\d+)")


@dataclass(frozen=True, slots=True)
class Document:
    """One manifest; `origin` is `FILE, document N`."""

    origin: str
    manifest: Object


def parse_manifests(name: str, text: str) -> Iterator[Document]:
    """Yield the manifests of a text; `name` begins every origin. ConfigurationError names what is wrong."""
    parts = [(line, part) for line, part in _split(text) if not _is_blank(part)]
    if not parts:
        raise ConfigurationError(f"{name}: contains no manifest")
    for number, (line, part) in enumerate(parts, 1):
        first = line + part[: len(part) - len(part.lstrip())].count("\n")
        origin = f"{name}, document {number} (line {first})" if len(parts) > 1 else name
        yield from to_documents(origin, _load(origin, line, part))


def parse_repository_file(name: str, text: str) -> tuple[list[Document], list[str]]:
    """Return the manifests of a file of a repository, and the origins of documents that are none.

    A repository has more than manifests: values of charts, settings of other tools. What has no `apiVersion` and
    `kind`, or is read by kustomize, is none. ConfigurationError names what is wrong with the rest.
    """
    documents: list[Document] = []
    others: list[str] = []
    parts = [(line, part) for line, part in _split(text) if not _is_blank(part)]
    for number, (line, part) in enumerate(parts, 1):
        first = line + part[: len(part) - len(part.lstrip())].count("\n")
        origin = f"{name}, document {number} (line {first})" if len(parts) > 1 else name
        value = _load(origin, line, part)
        if is_manifest(value):
            documents += to_documents(origin, value)
        else:
            others.append(origin)
    return documents, others


def is_manifest(value: Any) -> bool:
    """Return whether a value is meant for an API server."""
    if not isinstance(value, dict):
        return False
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if not (isinstance(api_version, str) and isinstance(kind, str) and api_version and kind):
        return False
    return api_version.partition("/")[0] not in _OF_TOOLS


_OF_TOOLS = frozenset(("kustomize.config.k8s.io", "config.kubernetes.io"))
"""Groups of files that tools read, and no server."""


def _split(text: str) -> Iterator[tuple[int, str]]:
    """Yield the YAML documents of a text with the numbers of their first lines."""
    start, line = 0, 1
    for marker in _MARKER.finditer(text):
        yield line, text[start : marker.start()]
        line += text.count("\n", start, marker.end())
        start = marker.end()
    yield line, text[start:]


def _is_blank(part: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in part.splitlines())


def _load(origin: str, line: int, part: str) -> Any:
    """Return the value of one document; errors have the line in the whole text."""
    try:
        value, duplicates = decode_yaml(part.encode())
    except BadRequest as error:
        message = error.message.rpartition("yaml: ")[2].replace('in "<byte string>",', "in")
        raise ConfigurationError(f"{origin}: {_shifted(message, line)}") from error
    if duplicates:
        raise ConfigurationError(f"{origin}: {_shifted('; '.join(duplicates), line)}")
    return value


def _shifted(message: str, line: int) -> str:
    return _LINE.sub(lambda found: f"line {int(found[1]) + line - 1}", " ".join(message.split()))


def to_documents(origin: str, value: Any) -> Iterator[Document]:
    """Yield the manifests of a value: itself, or the items of a list. ConfigurationError names what is wrong."""
    if not isinstance(value, dict):
        raise ConfigurationError(f"{origin}: a manifest is a mapping, not a {type(value).__name__}")
    kind = _required_string(origin, value, "kind")
    if kind.endswith("List") and isinstance(value.get("items"), list):
        for number, item in enumerate(value["items"], 1):
            yield from to_documents(f"{origin}, item {number}", item)
        return
    _required_string(origin, value, "apiVersion")
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        raise ConfigurationError(f"{origin}: metadata: Required value")
    _required_string(origin, metadata, "name", "metadata.")
    for field in ("name", "namespace"):
        # They become parts of an address, and must not lead to another one.
        found = metadata.get(field) or ""
        problems = path_segment(found) if isinstance(found, str) else ["must be a string"]
        if problems:
            raise ConfigurationError(f"{origin}: metadata.{field}: Invalid value: {found!r}: {'; '.join(problems)}")
    yield Document(origin, value)


def _required_string(origin: str, value: Any, field: str, prefix: str = "") -> str:
    found = value.get(field)
    if not isinstance(found, str) or not found:
        raise ConfigurationError(f"{origin}: {prefix}{field}: Required value: a string")
    return found
