"""Files with records of decisions, as `fedctl replay --export` writes them: one line for each chunk."""

import base64
import contextlib
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.nearestfile import unreadable
from federation.scheduling.replay.logentries import Chunk

_FORMAT: Final = "federation-replay/1"
_HEAD_BYTES_MAX: Final = 1024
_LINE_BYTES_MAX: Final = 128 << 20
"""A longer line is none of a chunk, whose content has at most 64 MiB before it is text."""


def write_records(chunks: Iterable[Chunk], file: Path) -> None:
    """Write chunks to a new file, one line each; ConfigurationError if it exists or cannot be written."""
    try:
        with file.open("xb") as written:
            file.chmod(0o600)
            written.write(orjson.dumps({"format": _FORMAT}) + b"\n")
            for chunk in chunks:
                written.write(orjson.dumps(to_item(chunk)) + b"\n")
    except FileExistsError:
        raise ConfigurationError(f"{file} exists; name another file, or remove it first") from None
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}; use a folder that exists and is writable") from error


def read_records(file: Path) -> list[Chunk]:
    """Return the chunks of an exported file; ConfigurationError for others."""
    problem = f"{file} has no records; give a file that `fedctl replay --export` or `fedctl backup` has written"
    try:
        with file.open("rb") as read:
            if _parse(read.readline(_HEAD_BYTES_MAX), problem).get("format") != _FORMAT:
                raise ConfigurationError(problem)
            lines = iter(partial(read.readline, _LINE_BYTES_MAX), b"")
            return [to_chunk(_parse(line, problem)) for line in lines]
    except OSError as error:
        raise ConfigurationError(f"{file}: {unreadable(file, error)}") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ConfigurationError(problem) from error


def _parse(line: bytes, problem: str) -> dict[str, Any]:
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads(line)
        if isinstance(found, dict):
            return found
    raise ConfigurationError(problem)


def to_item(chunk: Chunk) -> dict[str, Any]:
    """Return a chunk as a line of a file, and as an item of the host's answer."""
    return {
        "segment": chunk.segment,
        "number": chunk.number,
        "firstUs": chunk.first_us,
        "lastUs": chunk.last_us,
        "decisions": chunk.decisions,
        "content": base64.b64encode(chunk.content).decode(),
    }


def to_chunk(item: dict[str, Any]) -> Chunk:
    """Return the chunk of a line, or of an item of the host's answer; KeyError, TypeError or binascii.Error."""
    return Chunk(
        int(item["segment"]),
        int(item["number"]),
        int(item["firstUs"]),
        int(item["lastUs"]),
        int(item["decisions"]),
        base64.b64decode(item["content"], validate=True),
    )
