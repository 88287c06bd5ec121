"""OpenAPI over HTTP: `/openapi/v2`, the `/openapi/v3` index and its documents, cached as bytes with their hashes.

`semantics/openapi` builds the documents. It runs in a worker thread at the first request after the kinds changed,
because building takes too long for the event loop. `/openapi/v2` is also served as protobuf, which is the only form
that kubectl reads. The index also lists the documents of aggregated API servers, which answer the requests for them;
`/openapi/v2` does not contain them.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from email.utils import formatdate
from time import time
from typing import Any

import orjson

from federation.apimachinery.errors import not_served
from federation.apiserver.http.asgi import JSON_TYPE, Header, Request
from federation.apiserver.http.negotiation import negotiate
from federation.apiserver.http.protobuf import openapi as protobuf
from federation.apiserver.registry.apiservices import APIEntry, APIServices
from federation.apiserver.registry.discovery import REVIEWS
from federation.apiserver.semantics.kinds.kinds import KindInfo, Kinds
from federation.apiserver.semantics.openapi import Review, openapi_v2, openapi_v3

_JSON_RANGES = frozenset({b"application/json", b"application/*", b"*/*"})
_YEAR_S = 31_536_000

Forward = Callable[[Request, APIEntry, str], Awaitable[None]]
"""Lets the server of an APIService answer a request for another path."""


@dataclass(frozen=True, slots=True)
class Document:
    """Serialised content and its hash (upper-case hex, as kube-apiserver writes it)."""

    body: bytes
    hash: str
    kinds: tuple[KindInfo, ...] = ()
    """The kinds that it describes: while they are unchanged, the document is reused."""
    content_type: bytes = JSON_TYPE


class OpenAPI:
    """Serves the OpenAPI documents of one registry."""

    def __init__(self, kinds: Kinds, apis: APIServices, forward: Forward) -> None:
        self._kinds = kinds
        self._apis = apis
        self._forward = forward
        self._generation = -1
        self._lock = asyncio.Lock()
        self._v2: Document | None = None
        self._v2_protobuf: Document | None = None
        self._v3: dict[str, Document] = {}
        self._is_v3_current = False

    async def respond(self, request: Request) -> None:
        """Answer a path below `/openapi`; NotFound for a group version that is not served, NotAcceptable."""
        path = request.path.rstrip("/")
        accept = request.headers.get(b"accept", b"")
        if path == "/openapi/v2":
            whole = await (self._protobuf_v2() if _prefers_protobuf(accept) else self._document_v2())
            await self._send(request, whole, is_immutable=False)
            return
        negotiate(_json_only(accept))
        documents = await self._documents_v3()
        remote = self._remote_documents()
        if path == "/openapi/v3":
            hashes = {name: document.hash for name, document in documents.items() if name not in remote}
            hashes |= {name: digest for name, (_, digest) in remote.items() if digest}
            index = {
                "paths": {
                    name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"} for name, digest in hashes.items()
                }
            }
            body = orjson.dumps(index)
            await self._send(request, Document(body, _hash(body)), is_immutable=False)
            return
        name = path.removeprefix("/openapi/v3/")
        if name in remote:
            await self._forward(request, remote[name][0], path)
            return
        document = documents.get(name)
        if document is None:
            raise not_served()
        wanted = request.query.get("hash", "")
        if wanted and wanted != document.hash:
            location = f"/openapi/v3/{name}?hash={document.hash}".encode()
            await request.respond(301, b"", headers=[(b"location", location)])
            return
        await self._send(request, document, is_immutable=bool(wanted))

    def _remote_documents(self) -> dict[str, tuple[APIEntry, str]]:
        """Return the APIServices of other servers and the hashes of their documents, by the documents' names."""
        return {
            f"apis/{entry.group}/{entry.version}": (entry, self._apis.documents(key).openapi_hash)
            for key, entry in self._apis.remote.items()
        }

    async def _send(self, request: Request, document: Document, *, is_immutable: bool) -> None:
        etag = f'"{document.hash}"'.encode()
        headers: list[Header] = [(b"etag", etag), (b"vary", b"Accept")]
        cache: Header = (b"cache-control", b"no-cache, private")
        if is_immutable:
            cache = (b"cache-control", b"public, immutable")
            headers.append((b"expires", formatdate(time() + _YEAR_S, usegmt=True).encode()))
        if request.headers.get(b"if-none-match") in (etag, b"W/" + etag):
            await request.respond(304, b"", headers=headers, cache=cache)
            return
        await request.respond(200, document.body, content_type=document.content_type, headers=headers, cache=cache)

    async def _document_v2(self) -> Document:
        async with self._lock:
            # The lock makes concurrent first requests share one build.
            self._drop_outdated()
            if self._v2 is None:
                self._v2 = await asyncio.to_thread(_build_v2, self._kinds.all())
            return self._v2

    async def _protobuf_v2(self) -> Document:
        document = await self._document_v2()
        async with self._lock:
            if self._v2_protobuf is None or self._v2_protobuf.hash != document.hash:
                self._v2_protobuf = await asyncio.to_thread(_to_protobuf, document)
            return self._v2_protobuf

    async def _documents_v3(self) -> dict[str, Document]:
        async with self._lock:
            self._drop_outdated()
            if not self._is_v3_current:
                self._v3 = await asyncio.to_thread(_build_v3, self._kinds.all(), self._v3)
                self._is_v3_current = True
            return self._v3

    def _drop_outdated(self) -> None:
        if self._generation != self._kinds.generation:
            self._generation, self._v2, self._is_v3_current = self._kinds.generation, None, False


def _build_v2(kinds: list[KindInfo]) -> Document:
    return _to_document(openapi_v2(kinds))


def _build_v3(kinds: list[KindInfo], before: dict[str, Document]) -> dict[str, Document]:
    """Return the documents by name, reusing those of unchanged group versions."""
    by_version: dict[tuple[str, str], list[KindInfo]] = {key: [] for key in REVIEWS}
    for info in kinds:
        by_version.setdefault((info.resource.group, info.resource.version), []).append(info)
    documents = {}
    for (group, version), infos in by_version.items():
        name = f"apis/{group}/{version}" if group else f"api/{version}"
        known = before.get(name)
        if known is None or known.kinds != tuple(infos):
            content = openapi_v3(group, version, infos, reviews=_reviews(group, version))
            known = _to_document(content, tuple(infos))
        documents[name] = known
    return documents


def _reviews(group: str, version: str) -> list[Review]:
    return [Review(served.plural, served.kind, served.is_namespaced) for served in REVIEWS.get((group, version), ())]


def _to_document(content: Any, kinds: tuple[KindInfo, ...] = ()) -> Document:
    body = orjson.dumps(content)
    return Document(body, _hash(body), kinds)


def _to_protobuf(document: Document) -> Document:
    """Return version 2 as protobuf; the hash is that of the JSON, as the response varies by Accept."""
    body = protobuf.encode_document(orjson.loads(document.body))
    return replace(document, body=body, content_type=protobuf.MEDIA_TYPE)


def _hash(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def _prefers_protobuf(accept: bytes) -> bool:
    """Return whether protobuf comes before JSON; NotAcceptable when neither is accepted."""
    for clause in accept.split(b","):
        name = clause.partition(b";")[0].strip()
        if name in protobuf.ACCEPTED:
            return True
        if name in _JSON_RANGES:
            return False
    negotiate(_json_only(accept))
    return False


def _json_only(accept: bytes) -> bytes:
    """Return the header without parameters and with `+json` types as JSON: OpenAPI's media types are versioned."""
    names = (clause.partition(b";")[0].strip() for clause in accept.split(b","))
    return b",".join(b"application/json" if name.endswith(b"+json") else name for name in names)
