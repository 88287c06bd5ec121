"""GET and LIST: stored bytes, consistent paging, selectors.

Without selectors nothing is parsed. A page with selectors is filled from as many store pages as it takes, as in
Kubernetes, so that `limit` counts matching objects. Read `watches.py` next.

Decision: docs/decisions/0006-custom-resources-as-stored.md
"""

from federation.apimachinery.errors import BadRequest, Expired, RevisionCompacted, Timeout
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.store.interface import Page
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.filters import Filter
from federation.apiserver.verbs.listoptions import validate_list_options
from federation.apiserver.verbs.paging import Continuation, decode_token, encode_token, expired
from federation.apiserver.verbs.requestoptions import ListOptions, ListResult

_DIGITS_MAX = 20


class Reader:
    """Reads for one registry."""

    def __init__(self, context: VerbContext) -> None:
        self._context = context

    async def get(self, info: KindInfo, namespace: str, name: str, resource_version: str = "") -> bytes:
        """Return an object's bytes in the requested version; Timeout for a revision in the future."""
        if resource_version:
            await self._check_reached(parse_resource_version(resource_version))
        entry = await self._context.get_entry(info, namespace, name)
        return await self._context.from_storage(info, entry.value)

    async def list_page(self, info: KindInfo, namespace: str, options: ListOptions) -> ListResult:
        """Return one page of a collection, or all of it without a limit."""
        validate_list_options(options)
        shown = options.shown() if options.shown is not None else None
        selectors, cache = (options.label_selector, options.field_selector), self._context.label_cache
        wanted = Filter(info, *selectors, cache, shown, options.hides)
        start = await self._start(info, options)
        limit = self._limit(options)
        if wanted.name and (namespace or wanted.namespace or not info.resource.namespaced) and not start.key:
            return await self._list_one(info, namespace or wanted.namespace, wanted, start)
        return await self._list_pages(info, namespace or wanted.namespace, wanted, start, limit)

    async def _list_one(self, info: KindInfo, namespace: str, wanted: Filter, start: Continuation) -> ListResult:
        """Serve `metadata.name=x` with a page of one key, which also gives the revision of the list."""
        key = info.key(namespace, wanted.name)
        page = await self._page(key, 1, start, key)
        found = [
            value
            for entry in page.entries
            if entry.key == key
            and wanted.matches(key, entry.revision, value := await self._context.from_storage(info, entry.value))
        ]
        return ListResult(found, page.revision)

    async def _list_pages(
        self, info: KindInfo, namespace: str, wanted: Filter, start: Continuation, limit: int
    ) -> ListResult:
        prefix = info.collection(namespace)
        convert = self._context.list_from_storage
        if wanted.matches_all:
            page = await self._page(prefix, limit, start)
            items = await convert(info, [entry.value for entry in page.entries])
            token = encode_token(Continuation(page.revision, page.next_key)) if page.next_key else ""
            return ListResult(items, page.revision, token, page.remaining)
        items = []
        while True:
            page = await self._page(prefix, limit, start)
            values = await convert(info, [entry.value for entry in page.entries])
            for index, (entry, value) in enumerate(zip(page.entries, values, strict=True)):
                if not wanted.matches(entry.key, entry.revision, value):
                    continue
                items.append(value)
                if len(items) == limit:
                    return self._full(items, page, index, is_hiding=wanted.is_hiding)
            if not page.next_key:
                return ListResult(items, page.revision)
            start = Continuation(page.revision, page.next_key)

    def _full(self, items: list[bytes], page: Page, index: int, *, is_hiding: bool) -> ListResult:
        """End a filtered page at the entry that filled it; the number of later matches is unknown."""
        following = page.entries[index + 1].key if index + 1 < len(page.entries) else page.next_key
        if following and is_hiding:
            following = page.entries[index].key + "\0"  # the token must not have a name that is not shown
        token = encode_token(Continuation(page.revision, following)) if following else ""
        return ListResult(items, page.revision, token)

    async def _page(self, prefix: str, limit: int, start: Continuation, from_key: str = "") -> Page:
        try:
            return await self._context.store.list(
                prefix, limit=limit, from_key=start.key or from_key, revision=max(start.revision, 0)
            )
        except RevisionCompacted as error:
            if start.key:
                raise expired(start) from error
            raise Expired(f"The resourceVersion for the provided list is too old: {start.revision}") from error

    async def _start(self, info: KindInfo, options: ListOptions) -> Continuation:
        """Return the first key and the revision (0: newest) of the list."""
        if options.continue_token:
            if options.resource_version not in {"", "0"}:
                raise BadRequest("specifying resource version is not allowed when using continue")
            return decode_token(options.continue_token, info.prefix)
        if not options.resource_version:
            return Continuation(0, "")
        revision = parse_resource_version(options.resource_version)
        await self._check_reached(revision)
        match = options.resource_version_match
        exact = match == "Exact" or (not match and options.limit > 0 and revision > 0)
        return Continuation(revision if exact else 0, "")

    async def _check_reached(self, revision: int) -> None:
        newest = await self._context.store.revision()
        if revision > newest:
            raise too_large(revision, newest)

    def _limit(self, options: ListOptions) -> int:
        limit_max = self._context.options.list_limit_max
        return min(options.limit or limit_max, limit_max) if limit_max else options.limit


def parse_resource_version(text: str) -> int:
    """Return a resourceVersion as a revision; BadRequest when it is not a number."""
    if not text:
        return 0
    # `int` would also read "1_0", " 1" and digits of other scripts.
    if not (text.isascii() and text.isdigit() and len(text) < _DIGITS_MAX):
        raise BadRequest(f'resourceVersion: Invalid value: "{text[:64]}": must be a number of 0 or more')
    return int(text)


def too_large(revision: int, newest: int) -> Timeout:
    """Return the 504 for a resourceVersion in the future."""
    return Timeout(
        f"Timeout: Too large resource version: {revision}, current: {newest}",
        details={
            "retryAfterSeconds": 1,
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        },
    )
