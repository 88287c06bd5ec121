"""GET and LIST: stored bytes out again, consistent paging, selectors.

Without selectors nothing is parsed. A page with selectors reads on until it is full, as Kubernetes does, so that
`limit` counts matching objects. Read `watches.py` for what comes after a list.
"""

from federation.base.errors import BadRequest, Expired, RevisionCompacted, Timeout
from federation.registry.access import Access
from federation.registry.filters import Filter
from federation.registry.kinds import KindInfo
from federation.registry.options import ListOptions, ListResult
from federation.registry.paging import Continuation, decode_token, encode_token, expired
from federation.store.interface import Page

_DIGITS_MAX = 20
_MATCHES = frozenset({"", "Exact", "NotOlderThan"})


class Reader:
    """Reads for one registry."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def get(self, info: KindInfo, namespace: str, name: str, resource_version: str = "") -> bytes:
        """Return an object's bytes in the version asked for; Timeout for a revision that is not reached."""
        if resource_version:
            await self._check_reached(parse_resource_version(resource_version))
        entry = await self._access.entry(info, namespace, name)
        return await self._access.present_one(info, entry.value)

    async def list_page(self, info: KindInfo, namespace: str, options: ListOptions) -> ListResult:
        """Return one page of a collection, all of it when no limit is given."""
        wanted = Filter(info, options.label_selector, options.field_selector, self._access.label_cache)
        start = await self._start(info, options)
        limit = self._limit(options)
        if wanted.name and (namespace or wanted.namespace or not info.resource.namespaced) and not start.key:
            return await self._list_one(info, namespace or wanted.namespace, wanted, start)
        return await self._list_pages(info, namespace or wanted.namespace, wanted, start, limit)

    async def _list_one(self, info: KindInfo, namespace: str, wanted: Filter, start: Continuation) -> ListResult:
        """Answer `metadata.name=x` by reading x: the revision is read first, so it is never newer than the object."""
        key = info.key(namespace, wanted.name)
        page = await self._page(key, 1, start, key)
        found = [
            value
            for entry in page.entries
            if entry.key == key
            and wanted.matches(key, entry.revision, value := await self._access.present_one(info, entry.value))
        ]
        return ListResult(found, page.revision)

    async def _list_pages(
        self, info: KindInfo, namespace: str, wanted: Filter, start: Continuation, limit: int
    ) -> ListResult:
        prefix = info.collection(namespace)
        present = self._access.present
        if wanted.matches_all:
            page = await self._page(prefix, limit, start)
            items = await present(info, [entry.value for entry in page.entries])
            return self._result(items, page, page.remaining)
        items = []
        while True:
            page = await self._page(prefix, limit, start)
            values = await present(info, [entry.value for entry in page.entries])
            for index, (entry, value) in enumerate(zip(page.entries, values, strict=True)):
                if not wanted.matches(entry.key, entry.revision, value):
                    continue
                items.append(value)
                if len(items) == limit:
                    return self._full(items, page, index)
            if not page.next_key:
                return ListResult(items, page.revision)
            start = Continuation(page.revision, page.next_key)

    def _full(self, items: list[bytes], page: Page, index: int) -> ListResult:
        """End a filtered page at the entry that filled it; how many match after it is not known."""
        following = page.entries[index + 1].key if index + 1 < len(page.entries) else page.next_key
        token = encode_token(Continuation(page.revision, following)) if following else ""
        return ListResult(items, page.revision, token)

    def _result(self, items: list[bytes], page: Page, remaining: int) -> ListResult:
        if not page.next_key:
            return ListResult(items, page.revision)
        return ListResult(
            items, page.revision, encode_token(Continuation(page.revision, page.next_key)), remaining=remaining
        )

    async def _page(self, prefix: str, limit: int, start: Continuation, from_key: str = "") -> Page:
        try:
            return await self._access.store.list(
                prefix, limit=limit, from_key=start.key or from_key, revision=max(start.revision, 0)
            )
        except RevisionCompacted as error:
            if start.key:
                raise expired(start) from error
            raise Expired(f"The resourceVersion for the provided list is too old: {start.revision}") from error

    async def _start(self, info: KindInfo, options: ListOptions) -> Continuation:
        """Return from which key and at which revision (0: newest) the list reads."""
        match = options.resource_version_match
        if match not in _MATCHES:
            raise BadRequest(
                f'resourceVersionMatch: Unsupported value: "{match}": supported values: "Exact", "NotOlderThan"'
            )
        if match and not options.resource_version:
            raise BadRequest(
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
            )
        if options.continue_token:
            if options.resource_version not in {"", "0"}:
                raise BadRequest("specifying resource version is not allowed when using continue")
            return decode_token(options.continue_token, info.prefix)
        if not options.resource_version:
            return Continuation(0, "")
        revision = parse_resource_version(options.resource_version)
        if match == "Exact" and revision == 0:
            raise BadRequest(
                'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            )
        await self._check_reached(revision)
        exact = match == "Exact" or (not match and options.limit > 0 and revision > 0)
        return Continuation(revision if exact else 0, "")

    async def _check_reached(self, revision: int) -> None:
        newest = await self._access.store.revision()
        if revision > newest:
            raise too_large(revision, newest)

    def _limit(self, options: ListOptions) -> int:
        most = self._access.options.list_limit_max
        return min(options.limit or most, most) if most else options.limit


def parse_resource_version(text: str) -> int:
    """Return a resourceVersion as a revision; BadRequest when it is not a number."""
    if not text:
        return 0
    # `int` would also read "1_0", " 1" and digits of other scripts.
    if not (text.isascii() and text.isdigit() and len(text) < _DIGITS_MAX):
        raise BadRequest(f'resourceVersion: Invalid value: "{text[:64]}": must be a number of 0 or more')
    return int(text)


def too_large(revision: int, newest: int) -> Timeout:
    """Return the 504 for a resourceVersion that this store has not reached."""
    return Timeout(
        f"Too large resource version: {revision}, current: {newest}",
        details={
            "retryAfterSeconds": 1,
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        },
    )
