"""Remove the one-time links that earlier versions stored: Secrets with the encrypted credentials of a user.

Links need no store any more (`links.py`), so nothing would remove those of an installation that was upgraded. A process
of an earlier version on the same database may have made a link a moment ago; its user asks for another one.
"""

import structlog

from federation.api import names
from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.resources import SECRETS
from federation.client.client import Client

_PREFIX = "ui-link-"
_PAGE = 500
_log = structlog.get_logger(__name__)


async def remove_stored_links(client: Client) -> None:
    """Delete the Secrets of links, which are in the system namespace; log an error of the host."""
    try:
        found = client.list_all(SECRETS, names.SYSTEM_NAMESPACE, label_selector=names.LOGIN_LINK_LABEL, limit=_PAGE)
        listed = [secret["metadata"] async for secret in found]
        for metadata in listed:
            if metadata["name"].startswith(_PREFIX):
                await _remove(client, metadata["name"], metadata["uid"])
    except ApiError as error:  # the next start tries again
        _log.warning("stored one-time links cannot be removed", reason=error.message)


async def _remove(client: Client, name: str, uid: str) -> None:
    try:
        await client.delete(SECRETS, name, names.SYSTEM_NAMESPACE, uid=uid)
    except NotFound:
        return  # another process was faster
