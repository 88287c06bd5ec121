"""The audit log: queue, modes, files and rotation."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.metrics import sample_of
from tests.unit.apiserver.conftest import eventually

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ConfigurationError, ServiceUnavailable
from federation.apiserver.audit.auditoptions import AuditOptions, Mode, to_mode
from federation.apiserver.audit.log import AuditLog, Body, Entry, to_line


def options(path: Any, **changes: Any) -> AuditOptions:
    return AuditOptions(Path("policy.yaml"), str(path), **changes)


def entry(number: int) -> Entry:
    return Entry({"auditID": str(number), "annotations": {}})


def ids(path: Path) -> list[int]:
    """Return the entries of a log file, none while it is being rotated."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    return [int(orjson.loads(line)["auditID"]) for line in lines]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def dropped(reason: str) -> float:
    return sample_of("federation_server_audit_dropped_total", {"reason": reason}) or 0.0


async def test_events_are_written_in_order_and_the_rest_on_close(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(options(path), ManualClock())
    running = asyncio.create_task(log.run())
    for number in range(1200):
        log.put(entry(number))

    async def has_begun() -> bool:
        return path.stat().st_size > 0

    await eventually(has_begun)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await log.close()
    assert ids(path) == list(range(1200))
    assert path.stat().st_mode & 0o777 == 0o600


async def test_files_are_rotated_between_lines_and_old_ones_deleted(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    size = len(to_line(entry(0)))
    for first in range(0, 9, 3):  # each restart of the process continues the same files
        log = AuditLog(options(path, file_bytes_max=size * 2, backups_max=2), ManualClock())
        for number in range(first, first + 3):
            log.put(entry(number))
        await log.close()
    assert names(tmp_path) == ["audit.log", "audit.log.1", "audit.log.2"]
    kept = [ids(tmp_path / name) for name in ("audit.log.2", "audit.log.1", "audit.log")]
    assert kept == [[4, 5], [6, 7], [8]]


async def test_a_full_queue_drops_and_counts_in_batch_mode(tmp_path: Path) -> None:
    log = AuditLog(options(tmp_path / "a", queue_bytes_max=entry(0).size * 2), ManualClock())
    before = dropped("queue")
    for number in range(5):
        await log.wait_for_space()
        log.put(entry(number))
    assert dropped("queue") == before + 3
    await log.close()
    assert ids(tmp_path / "a") == [0, 1]


async def test_a_full_queue_makes_requests_wait_in_blocking_mode(tmp_path: Path) -> None:
    limits: dict[str, Any] = {"mode": Mode.BLOCKING, "queue_bytes_max": entry(0).size}
    log = AuditLog(options(tmp_path / "a", **limits), ManualClock())
    for number in range(2):
        await log.wait_for_space()
        log.put(entry(number))
    waiting = asyncio.create_task(log.wait_for_space())
    await asyncio.sleep(0)
    assert not waiting.done()
    running = asyncio.create_task(log.run())
    await asyncio.wait_for(waiting, 60)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await log.close()
    assert ids(tmp_path / "a") == [0, 1]


async def test_a_full_disk_drops_events_in_batch_mode_and_fails_requests_in_blocking_mode() -> None:
    batch = AuditLog(options("/dev/full"), ManualClock())
    before = dropped("write")
    batch.put(entry(1))
    await batch.close()
    assert dropped("write") == before + 1
    clock = ManualClock()
    limits: dict[str, Any] = {"mode": Mode.BLOCKING, "queue_bytes_max": 1, "wait_s_max": 0.01}
    blocking = AuditLog(options("/dev/full", **limits), clock)
    blocking.put(entry(1))
    running = asyncio.create_task(blocking.run())
    with pytest.raises(ServiceUnavailable, match="audit log"):
        await blocking.wait_for_space()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await blocking.close()
    assert dropped("write") == before + 2


async def test_blocking_mode_retries_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    path, folder = tmp_path / "logs" / "audit.log", tmp_path / "logs"
    folder.mkdir()
    clock = ManualClock()
    log = AuditLog(options(path, mode=Mode.BLOCKING, file_bytes_max=1), clock)
    log.put(entry(1))
    log.put(entry(2))
    path.unlink()
    folder.rmdir()
    running = asyncio.create_task(log.run())

    async def is_waiting() -> bool:
        return clock.next_deadline_s is not None

    await eventually(is_waiting)  # the first went into a file without a name, the second needs a new file
    folder.mkdir()
    await clock.advance(1)

    async def is_written() -> bool:
        return path.exists() and 2 in ids(path)

    await eventually(is_written)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await log.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: AuditLog(options(folder), ManualClock()),
        lambda folder: AuditLog(options(folder / "no" / "such"), ManualClock()),
        lambda folder: options(folder, file_bytes_max=0),
        lambda folder: options(folder, backups_max=0),
        lambda folder: to_mode("async"),
    ],
)
def test_invalid_options_name_the_flag(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    with pytest.raises(ConfigurationError, match="audit-log-"):
        make(tmp_path)


def test_the_body_of_a_create_completes_the_reference() -> None:
    event = {"objectRef": {"resource": "pods", "namespace": "ns"}, "annotations": {}}
    body = Body(
        b'{"metadata":{"name":"a","namespace":"other","uid":"1"}}', "", is_redacted=False, includes_managed_fields=True
    )
    line = orjson.loads(to_line(Entry(event, body, includes_request=False)))
    assert line == {"objectRef": {"resource": "pods", "namespace": "ns", "name": "a", "uid": "1"}, "annotations": {}}
    assert event["objectRef"] == {"resource": "pods", "namespace": "ns"}


def test_unserialisable_content_is_omitted_and_annotated() -> None:
    line = orjson.loads(to_line(Entry({"auditID": "1", "annotations": {"a": "\ud800"}})))
    assert line == {"auditID": "1", "annotations": {"audit.k8s.io/truncated": "true"}}
