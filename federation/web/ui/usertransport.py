"""The user's API as the transport of a `Client`, so that code for any API server works with the rights of a session."""

from urllib.parse import parse_qsl, unquote

from federation.apimachinery.errors import ApiError, ClusterError
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import Object
from federation.apimachinery.usedtime import charged
from federation.client.client import Client, Request, Watch
from federation.client.encoding import encode
from federation.client.storedkinds import StoredKinds
from federation.client.storedversion import StoredVersionTransport
from federation.client.watchdecoder import LineSplitter, to_event
from federation.web.ui.userapi import UserAPI

_EVENT_BYTES_MAX = 16 << 20


class UserTransport:
    """Sends requests through `api`; it needs no connection and owns nothing."""

    def __init__(self, api: UserAPI) -> None:
        self._api = api

    async def request(self, request: Request) -> Object:
        """Return the parsed answer; list items get apiVersion and kind, which servers omit."""
        method, path, query, body = encode(request)
        answer = await self._api.send(method, unquote(path), _pairs(query), body or b"", request.content_type)
        with charged():
            found = parse_object(answer)
        if found is None:
            raise ClusterError(f"the API server answered {method} {path} without a JSON object")
        for item in found.get("items") or () if request.verb == "list" else ():
            item.setdefault("apiVersion", request.resource.api_version)
            item.setdefault("kind", request.resource.kind)
        return {} if request.verb == "delete" else found

    async def stream(self, request: Request) -> Watch:
        """Yield an empty batch when the watch is established, then changes; Expired when the start is too old."""
        splitter, (_, path, query, _) = LineSplitter(_EVENT_BYTES_MAX), encode(request)
        async for chunk in self._api.stream(unquote(path), _pairs(query)):
            batch = []
            for event in map(to_event, splitter.feed(chunk)):
                if isinstance(event, ApiError):
                    raise event
                batch.append(event)
            yield batch

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        """Return status code and body; the server in this process keeps its own deadlines and answers in JSON."""
        del timeout_s, accept
        path, _, query = path.partition("?")
        return await self._api.answer(method, unquote(path), _pairs(query), body or b"")

    async def close(self) -> None:
        """Do nothing: the API server is not ours."""


def client_of(api: UserAPI) -> Client:
    """Return a client with the rights of the user, whose patches remove no field that a user wrote."""
    transport = UserTransport(api)
    return Client(StoredVersionTransport(transport, StoredKinds(transport).stored_in))


def _pairs(query: str) -> dict[str, str]:
    return dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True))
