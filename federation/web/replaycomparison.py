"""Replays in another world at `/federation/v1/replay`, for the web UI: what recorded decisions would have been.

They are computed in a process of their own, in turn (`replayturns.py`), within limits of time, memory and records.
`fedctl replay` has no limits, and reads the records itself. Who may read the records sees everything. Other users name
a namespace: they see what they may list there, and may change policies of that namespace only.

Decision: docs/decisions/0169-replays-of-the-web-ui-run-beside-the-host.md
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.errors import BadRequest, Forbidden, ServiceUnavailable
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import Object
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.journal.decisions import Journal
from federation.plans.recordfiles import write_records
from federation.scheduling.replay.logentries import Chunk, decides_in, to_us
from federation.web.objectlist import ObjectListView, visible_types
from federation.web.replayturns import ReplayTurns
from federation.web.requests import json_response, may_list, read_body

PATH = "/federation/v1/replay"
WORKER = "federation.cli.replay.worker"
"""The module that decides again, run by this Python: it is above this package, so that it is named and not imported."""
_BODY_BYTES_MAX = 1 << 20
_RECORD_BYTES_MAX = 64 << 20
"""Compressed bytes of records in one replay."""
_RECORD_BYTES_OF_NAMESPACE_MAX = 16 << 20
"""The same for a user of a namespace."""
_PAGE_BYTES = 4 << 20
_TIME_S_MAX = 60.0
_MEMORY_BYTES_MAX = 1 << 30
"""Memory of the process that decides again."""
_MEMORY_BYTES_OF_NAMESPACE_MAX = 512 << 20
"""The same for a user of a namespace."""
_ANSWER_BYTES_MAX = 32 << 20


class ReplayRequest(BaseModel):
    """The period, and the other world; without changes the recorded world is compared with itself."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", populate_by_name=True)

    since: datetime
    until: datetime | None = None
    namespace: Annotated[str, Field(max_length=63, pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    objects: Annotated[list[dict[str, Any]], Field(max_length=200)] = []
    """Policies and other objects of the other world."""
    without_clusters: Annotated[list[str], Field(max_length=200)] = []
    add_clusters: Annotated[list[str], Field(max_length=200)] = []
    profile: Annotated[str, Field(max_length=253)] = ""


class Own(NamedTuple):
    """The decisions that a user of a namespace may see: of kinds (group, kind), and of a project ("": of any)."""

    kinds: list[tuple[str, str]]
    project: str


def add_routes(web: FastAPI, journal: Journal, listed: ObjectListView, needed: list[Attributes]) -> None:
    """Serve replays; those of everything need these permissions."""
    turns = {True: ReplayTurns(), False: ReplayTurns()}  # users of namespaces do not keep operators waiting

    @web.post(PATH)
    async def replay(request: Request) -> Response:
        """Return both worlds by hour, namespace and team, as `fedctl replay -o json` prints them."""
        asked = _parse(await read_body(request, _BODY_BYTES_MAX, "a replay has at most 1 MiB of objects"))
        own = await _authorize(request, asked, listed, needed)
        asker = "" if own is None else own.project or asked.namespace
        async with turns[own is None].turn(asker):
            until_us = None if asked.until is None else to_us(asked.until)
            if own is None:
                chunks = await _read(journal, to_us(asked.since), until_us)
                return json_response(200, await compute(asked, own, chunks))
            chunks = await _read_own(journal, to_us(asked.since), until_us, asked.namespace)
            found = await compute(asked, own, chunks, memory_bytes_max=_MEMORY_BYTES_OF_NAMESPACE_MAX)
            return json_response(200, found)


def _parse(body: bytes) -> ReplayRequest:
    try:
        asked = ReplayRequest.model_validate(parse_object(body))
    except ValidationError as error:
        found = error.errors()[0]
        raise BadRequest(f"{'.'.join(map(str, found['loc'])) or 'body'}: {found['msg']}") from error
    for field, at in (("since", asked.since), ("until", asked.until)):
        if at is not None and at.tzinfo is None:
            raise BadRequest(f"{field}: a time needs a time zone, for example 2026-01-01T00:00:00Z")
    return asked


async def _authorize(
    request: Request, asked: ReplayRequest, listed: ObjectListView, needed: list[Attributes]
) -> Own | None:
    """Return the decisions that count, None for all; Forbidden for what the user may not see or change."""
    try:
        await request.scope[AUTHORIZE](needed, is_path_enough=False)
    except Forbidden as error:
        if not asked.namespace:
            raise Forbidden(
                f"{error.message}; without that right, name a namespace in which you may list objects"
            ) from error
        visible, _ = await visible_types(request, listed, asked.namespace)
        if not visible:
            raise
        if asked.without_clusters or asked.add_clusters or asked.profile or not _is_own(asked):
            raise Forbidden(
                f"in a replay of namespace {asked.namespace} you may change PropagationPolicies of that namespace;"
                " anything else needs the right to read all records"
            ) from error
        own = [(type_.resource.group, type_.resource.kind) for type_, _ in visible]
        project = listed.projects().of(asked.namespace)
        if project is None or await may_list(request, FEDERATED_CLUSTERS, ""):
            return Own(own, "")
        return Own(own, project.name)
    return None


def _is_own(asked: ReplayRequest) -> bool:
    policy = (PROPAGATION_POLICIES.group, PROPAGATION_POLICIES.kind)
    return all(
        (str(each.get("apiVersion") or "").rpartition("/")[0], each.get("kind")) == policy
        and isinstance(each.get("metadata"), dict)
        and (each["metadata"].get("namespace") or "default") == asked.namespace
        for each in asked.objects
    )


async def _read(journal: Journal, since_us: int, until_us: int | None) -> list[Chunk]:
    """Return the records of a time; BadRequest if they are too large. Later ones are not read."""
    return [chunk async for page in _pages(journal, since_us, until_us) for chunk in page]


async def _read_own(journal: Journal, since_us: int, until_us: int | None, namespace: str) -> list[Chunk]:
    """Return the records from the first to the last segment with a decision in the namespace; others are not kept.

    A user of a namespace changes policies of that namespace only, so nothing differs before the first such decision,
    and a segment has everything that its decisions depend on. BadRequest if the records are too large.
    """
    chunks: list[Chunk] = []
    own: set[int] = set()
    async for page in _pages(journal, since_us, until_us):
        for chunk in page:
            if chunk.segment not in own and await asyncio.to_thread(decides_in, chunk, namespace):
                own.add(chunk.segment)
        first = min(own, default=page[-1].segment if page else 0)
        chunks = [chunk for chunk in (*chunks, *page) if chunk.segment >= first]
        _check_size(sum(len(chunk.content) for chunk in chunks), _RECORD_BYTES_OF_NAMESPACE_MAX)
    return [chunk for chunk in chunks if chunk.segment <= max(own, default=0)]


async def _pages(journal: Journal, since_us: int, until_us: int | None) -> AsyncIterator[list[Chunk]]:
    after, size = (0, 0), 0
    while found := await journal.read_inputs(since_us, after, _PAGE_BYTES):
        yield [chunk for chunk in found if until_us is None or chunk.first_us <= until_us]
        if until_us is not None and found[-1].first_us > until_us:
            return
        after, size = (found[-1].segment, found[-1].number), size + sum(len(chunk.content) for chunk in found)
        _check_size(size, _RECORD_BYTES_MAX)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise BadRequest(
            f"since: the records of this time are larger than {most >> 20} MiB; choose a later time,"
            " or use fedctl replay"
        )


async def compute(
    asked: ReplayRequest,
    own: Own | None,
    chunks: Sequence[Chunk],
    time_s_max: float = _TIME_S_MAX,
    memory_bytes_max: int = _MEMORY_BYTES_MAX,
) -> Object:
    """Run the worker; BadRequest with its message if it refuses, ServiceUnavailable if it takes too long.

    BadRequest, too, if it needs more memory.
    """
    with tempfile.TemporaryDirectory(prefix="federation-replay-") as folder:
        records = Path(folder) / "records"
        await asyncio.to_thread(write_records, chunks, records)
        kinds, project = own or (None, "")
        order = {
            "records": str(records),
            "kinds": kinds,
            "project": project,
            "memoryBytesMax": memory_bytes_max,
            **asked.model_dump(mode="json", by_alias=True),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", WORKER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(time_s_max):
                answer, _ = await process.communicate(orjson.dumps(order))
        except TimeoutError as error:
            raise ServiceUnavailable(
                f"the replay takes longer than {time_s_max:g} s; choose a shorter time, or use fedctl replay"
            ) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    found = parse_object(answer[:_ANSWER_BYTES_MAX])
    if found is None:
        raise ServiceUnavailable("the replay failed; its process has ended without an answer")
    if problem := found.get("problem"):
        raise BadRequest(str(problem))
    return found
