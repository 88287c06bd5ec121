"""Which template revisions sync may deliver to clusters that have the object already, and why a rollout failed. Pure.

A federated object whose policies have waves carries their rules in an annotation (`planning/waves/waverules.py`). Then
a cluster keeps its pod template until `features/waves` approves the new one.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.mergepatch import without_nulls
from federation.planning.rendering.memberobject import template_revision


def approved_revisions(federated: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Return the approved template revision by cluster, None for an object without waves.

    A malformed record approves nothing.
    """
    annotations = (federated.get("metadata") or {}).get("annotations") or {}
    if not (annotations.get(names.ROLLOUT) or annotations.get(names.OVERRIDE_ROLLOUT)):
        return None
    try:
        approved = orjson.loads(annotations.get(names.APPROVED_REVISIONS) or b"{}")
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(approved, dict):
        return {}
    return {cluster: revision for cluster, revision in approved.items() if isinstance(revision, str)}


def to_annotation(approved: Mapping[str, str]) -> str:
    """Return the annotation of the approved revisions."""
    return orjson.dumps(approved, option=orjson.OPT_SORT_KEYS).decode()


def to_failure(federated: Mapping[str, Any], reason: str) -> str | None:
    """Return the annotation of a failed rollout, None without a reason. It is about the present pod template only."""
    if not reason:
        return None
    template = template_revision(federated["spec"]["template"])
    return orjson.dumps({"reason": reason, "template": template}, option=orjson.OPT_SORT_KEYS).decode()


def failure_of(federated: Mapping[str, Any], source: Mapping[str, Any]) -> str:
    """Return why the rollout of the source's pod template failed, "" if it did not.

    A user may have replaced the template since: the record of the earlier one says nothing about it.
    """
    text = ((federated.get("metadata") or {}).get("annotations") or {}).get(names.ROLLOUT_FAILURE)
    if not text:
        return ""
    # The template of a federated object has no nulls; a source may have some.
    template = template_revision(without_nulls(source))
    found = parse_object(text) or {}
    return str(found.get("reason") or "") if found.get("template") == template else ""
