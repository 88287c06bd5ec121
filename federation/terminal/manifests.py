"""Read manifests from files, directories and standard input; `federation/plans/documents.py` parses them."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.nearestfile import unreadable
from federation.plans.documents import Document, parse_manifests

_SUFFIXES = (".yaml", ".yml", ".json")
_BYTES_MAX = 64 << 20
"""Limit for one file and for standard input."""


def read_manifests(paths: Iterable[str]) -> list[Document]:
    """Return the manifests of files, directories (not recursive) and `-`; ConfigurationError names what is wrong."""
    documents: list[Document] = []
    for name, text in _read_sources(paths):
        documents += parse_manifests(name, text)
    return documents


def _read_sources(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    for given in paths:
        if given == "-":
            yield "standard input", _text(sys.stdin.buffer, "standard input")
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
                with entry.open("rb") as file:
                    yield str(entry), _text(file, f"-f {entry}")
            except OSError as error:
                raise ConfigurationError(f"-f {entry}: {unreadable(entry, error)}") from error


def _text(file: BinaryIO, origin: str) -> str:
    """Return the text of a file, which may be a pipe without end, or a device."""
    content = file.read(_BYTES_MAX + 1)
    if len(content) > _BYTES_MAX:
        raise ConfigurationError(f"{origin}: larger than {_BYTES_MAX >> 20} MiB")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{origin}: it is not UTF-8") from error
