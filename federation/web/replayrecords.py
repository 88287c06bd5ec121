"""The records of what decisions depended on at `/federation/v1/replay/records`, for `fedctl replay`.

Records have templates, clusters and policies of everybody. So reading them needs the right to list all of these.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from federation.apimachinery.errors import BadRequest
from federation.apimachinery.resources import Resource
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.journal.decisions import Journal
from federation.plans.recordfiles import to_item
from federation.scheduling.replay.logentries import to_us
from federation.scheduling.replay.projection import RECORDED
from federation.scheduling.whatif.state import FEDERATED
from federation.web.requests import json_response, to_read

PATH = "/federation/v1/replay/records"
_BYTES_MAX = 4 << 20
"""Bytes of the chunks in one response; `metadata.continue` leads to the rest."""


def add_routes(web: FastAPI, journal: Journal, needed: list[Attributes]) -> None:
    """Serve the records to users with these permissions."""

    @web.get(PATH)
    async def records(
        request: Request,
        since: datetime,
        after: Annotated[str, Query(alias="continue", pattern=r"^[0-9]{1,18}\.[0-9]{1,9}$")] = "0.0",
    ) -> Response:
        """Return the chunks of all segments that have decisions since a time, oldest first."""
        if since.tzinfo is None:
            raise BadRequest("since: a time needs a time zone, for example 2026-01-01T00:00:00Z")
        await request.scope[AUTHORIZE](needed, is_path_enough=False)
        segment, number = map(int, after.split("."))
        found = await journal.read_inputs(to_us(since), (segment, number), _BYTES_MAX)
        metadata = {"continue": f"{found[-1].segment}.{found[-1].number}"} if found else {}
        return json_response(
            200, {"kind": "ReplayRecordList", "metadata": metadata, "items": [to_item(chunk) for chunk in found]}
        )


def required(kinds: Iterable[Resource]) -> list[Attributes]:
    """Return the permissions to read records: to list everything that they come from, in all namespaces."""
    return [to_read(resource, "list", "") for resource in (*RECORDED, *kinds, *FEDERATED)]
