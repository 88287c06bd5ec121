"""Lists of several kinds on one screen: the objects that the user may list, filtered by namespace, kind and name."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from federation.apimachinery.nameformats import path_segment
from federation.apimachinery.resources import Resource
from federation.web.ui.screen import Collection, Page, read_optional_lists

_READ_MAX = 500
"""Objects of one kind that are read."""


class Found(NamedTuple):
    """The objects with their kinds, the kinds that the user may not list, and whether there are more objects."""

    objects: list[tuple[Resource, Mapping[str, Any]]]
    hidden: list[str]
    has_more: bool


async def read_kinds(page: Page, resources: Sequence[Resource]) -> Found:
    """Return the objects of these kinds that pass the page's filter."""
    namespace, kind = page.query.get("namespace", "").strip(), page.query.get("kind", "")
    if namespace and path_segment(namespace):  # no other text is a namespace, and it becomes a part of an address
        return Found([], [], has_more=False)
    asked = [each for each in resources if kind in ("", each.kind) and (each.namespaced or not namespace)]

    lists = await asyncio.gather(*(read_optional_lists(page, each, namespace, limit=str(_READ_MAX)) for each in asked))
    answers = list(zip(asked, lists, strict=True))
    text = page.query.get("name", "")
    objects = [
        (resource, obj)
        for resource, answer in answers
        for obj in (answer or {"items": ()})["items"]
        if text in str(obj["metadata"]["name"])
    ]
    hidden = [resource.group_resource for resource, answer in answers if answer is None]
    has_more = any(answer is not None and answer["metadata"].get("continue") for _, answer in answers)
    return Found(objects, hidden, has_more)


def watched_kinds(page: Page, resources: Sequence[Resource]) -> Sequence[Collection]:
    """Return the collections of these kinds that pass the page's filter by namespace."""
    namespace = page.query.get("namespace", "").strip()
    namespace = "" if path_segment(namespace) else namespace
    return [(each.path(namespace), {}) for each in resources]


def is_filtered(page: Page) -> bool:
    """Return whether the user filters the list."""
    return any(page.query.get(field) for field in ("name", "namespace", "kind"))
