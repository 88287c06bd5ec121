"""Which template revisions sync may deliver to clusters that have the object already. Pure.

A federated object whose policies have waves carries their rules in an annotation (`planning/waves/waverules.py`). Then
a cluster keeps its pod template until `controllers/rollout` approves the new one.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.api import names


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
