"""Writes on behalf of the users who wrote a wish: their rights, quotas, LimitRanges and admission decide.

A controller that makes an object from another one, whose spec is a user's wish, writes it as the user who wrote the
wish last. What the other authors wrote is in the result, too, so their admission must pass it as well. Without a
record of authors the control plane writes as itself. `planning/authors.py` reads the record.

Decision: docs/decisions/0086-wishes-are-carried-out-as-their-author.md
"""

import contextlib
from collections.abc import Sequence

from federation.apimachinery.errors import AlreadyExists
from federation.apimachinery.resources import Object, Resource, UserInfo
from federation.client.client import Client, PatchType


async def apply_for(
    authors: Sequence[UserInfo],
    client: Client,
    resource: Resource,
    obj: Object,
    *,
    field_manager: str,
    dry_run: bool = False,
) -> Object:
    """Apply a whole object by force, as the last of the authors; Forbidden or Invalid when it is refused to one."""
    for author in authors[:-1]:
        with contextlib.suppress(AlreadyExists):  # an API server over HTTP answers this after admission
            await client.review(resource, obj, user=author)
    return await client.patch(
        resource,
        obj["metadata"]["name"],
        obj,
        patch_type=PatchType.APPLY,
        namespace=obj["metadata"].get("namespace", ""),
        field_manager=field_manager,
        force=True,
        dry_run=dry_run,
        user=writer_of(authors),
    )


def writer_of(authors: Sequence[UserInfo]) -> UserInfo | None:
    """Return the user to write as, None for the control plane itself."""
    return authors[-1] if authors else None
