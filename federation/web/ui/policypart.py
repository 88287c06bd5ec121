"""The part of an object's page that a policy has in place of the tree: its meaning, its objects, its manifest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from federation.api.resources import POLICIES
from federation.api.secretvalues import without_secret_values
from federation.apimachinery.errors import ApiError
from federation.apimachinery.resources import Resource
from federation.planning.waves.policychanges import ChangeRecord, record_of
from federation.web import policyobjects
from federation.web.ui.policiesscreen import to_row
from federation.web.ui.screen import PAGE_ROWS, Page

_YAML_BYTES_MAX = 64 << 10


@dataclass(frozen=True, slots=True)
class PolicyPart:
    """The meaning of a policy, a page of its objects, and its spec as YAML, cut at a limit."""

    selects: str
    does: str
    count: int
    objects: tuple[Mapping[str, Any], ...]
    hidden: tuple[str, ...]
    has_more: bool
    text: str
    change: ChangeRecord | None = None
    """The last change in waves, None without one."""


async def read_policy(page: Page, resource: Resource, policy: Mapping[str, Any]) -> PolicyPart | None:
    """Return the part about a policy, None for any other object."""
    known = next((each for each in POLICIES if each.group_resource == resource.group_resource), None)
    if known is None:
        return None
    row = to_row(known, policy)
    about = {"kind": known.kind, "name": row.name} | ({"namespace": row.namespace} if row.namespace else {})
    try:
        found = await page.api.get(policyobjects.PATH, **about, limit=str(PAGE_ROWS))
    except ApiError:  # the control plane is starting
        found = {"items": [], "hiddenResources": [], "metadata": {}}
    return PolicyPart(
        row.selects,
        row.does,
        row.objects,
        tuple(found["items"]),
        tuple(found["hiddenResources"]),
        bool(found["metadata"].get("continue")),
        spec_text(policy),
        record_of(policy),
    )


def spec_text(source: Mapping[str, Any]) -> str:
    """Return the spec of an object as YAML, without values of Secrets and cut at a limit."""
    spec = without_secret_values(source).get("spec")
    text = yaml.dump(spec, Dumper=yaml.CSafeDumper, sort_keys=False, width=120, allow_unicode=True)
    return str(text)[:_YAML_BYTES_MAX]
