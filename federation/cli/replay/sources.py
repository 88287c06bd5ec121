"""Where `fedctl replay` reads records: from a running host, or from a file that `--export` wrote."""

from datetime import datetime
from pathlib import Path
from typing import Final

from federation.apimachinery.clock import to_rfc3339_micro
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.nearestfile import unreadable
from federation.plans.recordfiles import read_records, to_chunk
from federation.scheduling.replay.logentries import Chunk
from federation.settings import from_environment
from federation.terminal.kubeconfigcontext import KubeconfigContext, get_json
from federation.twin.fleetcopy import records_of_backup

_PATH: Final = "/federation/v1/replay/records"
_DATABASE: Final = b"SQLite format 3\0"


async def from_host(context: KubeconfigContext, since: datetime) -> list[Chunk]:
    """Return the chunks of a running host that reach a time."""
    chunks: list[Chunk] = []
    parameters = {"since": to_rfc3339_micro(since)}
    async with context.client() as host:
        while True:
            answer = await get_json(host, _PATH, parameters)
            assert isinstance(answer, dict)
            if not answer["items"]:
                return chunks
            chunks += map(to_chunk, answer["items"])
            parameters["continue"] = answer["metadata"]["continue"]


async def from_file(file: Path, since_us: int = 0) -> list[Chunk]:
    """Return the chunks of an exported file, or those of a backup that reach a time; ConfigurationError for others.

    Encrypted records of a backup are read with the keys that the environment names (`FEDERATION_ENCRYPTION_KEY_FILE`).
    """
    try:
        with file.open("rb") as read:
            is_backup = read.read(len(_DATABASE)) == _DATABASE
    except OSError as error:
        raise ConfigurationError(f"{file}: {unreadable(file, error)}") from error
    if is_backup:
        return await records_of_backup(file, from_environment({"directory": Path()}).encryption, since_us)
    return read_records(file)
