"""Options of the audit log, named as kube-apiserver's flags."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from federation.apimachinery.errors import ConfigurationError

STDOUT = "-"
Mask = Callable[[Any], Any]
"""Returns a body of any kind without values of Secrets."""


def unchanged(body: Any) -> Any:
    """Return the body as it is: the mask of a server whose objects carry no others."""
    return body


class Mode(StrEnum):
    """The behaviour when events arrive faster than they can be written."""

    BATCH = "batch"
    """Requests never wait; events that do not fit into the queue are dropped and counted."""
    BLOCKING = "blocking"
    """No event is dropped; requests wait for space in the queue, and get a 503 when that takes too long."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Policy, destination and limits of the audit log."""

    policy_file: Path
    log_path: str
    """A file, or "-" for standard output."""
    file_bytes_max: int = 100 * 1024 * 1024
    """A file that would grow beyond this is renamed to FILE.1, FILE.1 to FILE.2, …"""
    backups_max: int = 10
    """Renamed files that are kept."""
    mode: Mode = Mode.BATCH
    queue_bytes_max: int = 64 * 1024 * 1024
    """Bytes of events that wait to be written, bodies included."""
    body_bytes_max: int = 1024 * 1024
    """A longer request or response body is omitted from its event, which is annotated as truncated."""
    redacted_resources: tuple[tuple[str, str], ...] = ()
    """Group and plural of further resources whose values are redacted like those of Secrets."""
    wait_s_max: float = 10.0
    """In blocking mode: how long a request waits for space in the queue."""
    mask: Mask = unchanged

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


def to_audit_options(
    policy_file: str,
    log_path: str,
    mebibytes: int,
    backups: int,
    mode: str,
    redacted: tuple[tuple[str, str], ...],
    mask: Mask,
) -> AuditOptions | None:
    """Return the options of the settings, None without a policy; ConfigurationError names the wrong one."""
    if not policy_file:
        return None
    return AuditOptions(
        Path(policy_file),
        log_path,
        file_bytes_max=mebibytes * 1024 * 1024,
        backups_max=backups,
        mode=to_mode(mode),
        redacted_resources=redacted,
        mask=mask,
    )
