"""Reading a list page by page: pages that are too large, and lists that expire under way."""

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from federation.apimachinery.errors import ClusterLimitExceeded, Expired
from federation.client.client import ObjectPage

Fetch = Callable[[], Awaitable[ObjectPage]]
OpenPage = Callable[[int, str], AbstractAsyncContextManager[ObjectPage]]
"""Requests a page with a limit of objects and a continue token, and closes it when it is not needed any more."""


async def read_pages(
    open_page: OpenPage, *, page_size: int, check_pages: Callable[[int], None]
) -> AsyncGenerator[tuple[ObjectPage, bool]]:
    """Yield the pages of a list, each with True if it is the first; a list that expires begins again.

    `check_pages` gets the number of each request, and may raise. A page that is too large is requested again with half
    as many objects.
    """
    token, limit = "", page_size
    for requested in itertools.count(1):
        check_pages(requested)
        try:
            async with open_page(limit, token) as page:
                yield page, not token
            # The page itself must not stay in memory until the next one is there.
            token = page.continue_token
            del page
        except Expired:
            if not token:
                raise
            # The revision of the pages was compacted. A list without pages cannot expire.
            token, limit = "", 0
            continue
        except ClusterLimitExceeded:
            if limit == 1:
                raise
            limit = max(1, (limit or page_size) // 2)
            continue
        if not token:
            return


@asynccontextmanager
async def opened(fetch: Fetch) -> AsyncIterator[ObjectPage]:
    """Fetch a page and yield it."""
    yield await fetch()
