"""Options of the audit log. Names as kube-apiserver's flags; plain facts, so that settings can hold them cheaply."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from federation.base.errors import ConfigurationError

STDOUT = "-"


class Mode(StrEnum):
    """What happens when events come faster than they can be written."""

    BATCH = "batch"
    """Requests never wait; what does not fit into the queue is dropped and counted."""
    BLOCKING = "blocking"
    """Nothing is dropped; requests wait for room in the queue, and get a 503 when that takes too long."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What is written, where to, and how much of it may wait."""

    policy_file: Path
    log_path: str
    """A file, or "-" for standard output."""
    file_bytes_max: int = 100 * 1024 * 1024
    """A file that would grow beyond is renamed to FILE.1, FILE.1 to FILE.2, …"""
    backups_max: int = 10
    """How many renamed files are kept."""
    mode: Mode = Mode.BATCH
    queue_bytes_max: int = 64 * 1024 * 1024
    """Events that wait to be written, bodies included."""
    body_bytes_max: int = 1024 * 1024
    """A longer request or response body is left out of its event, which says so in an annotation."""
    wait_s_max: float = 10.0
    """In blocking mode: how long a request waits for room."""

    def __post_init__(self) -> None:
        if self.file_bytes_max <= 0:
            raise ConfigurationError("audit-log-maxsize: must be at least 1 (MiB)")
        if self.backups_max < 1:
            raise ConfigurationError("audit-log-maxbackup: must be at least 1")


def to_mode(text: str) -> Mode:
    """Return the mode of this name; ConfigurationError lists them."""
    try:
        return Mode(text)
    except ValueError:
        raise ConfigurationError(f"audit-log-mode {text!r}: choose {' or '.join(Mode)}") from None
