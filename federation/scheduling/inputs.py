"""What a decision was made of, as hashes: two decisions can be compared, and one tells whether its inputs differed.

A hash per input, so that `fedctl why --diff` can say that the policy changed and the clusters did not. The object's
hash covers manifest, labels and annotations, not what the control plane keeps about it: where it was before is in the
explanation itself. Costs some microseconds: policies, profiles and snapshots are hashed once, not per decision. Pure.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import orjson

from federation.api import names
from federation.scheduling.framework.promised import content_hash
from federation.scheduling.framework.types import Reserved
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.triggers import HASHED_ANNOTATIONS

_ANNOTATIONS = (*HASHED_ANNOTATIONS, names.AUTO_MIGRATION_INFO)
_NOT_CONTENT = frozenset(("metadata", "status"))


def inputs_of(
    fed_object: Mapping[str, Any],
    snapshot: Snapshot,
    *,
    policy_hash: str,
    profile_hash: str = "",
    reserved: Reserved | None = None,
) -> dict[str, str]:
    """Return the hash of each input; of the profile when it is not the built-in one, of promises when there are any."""
    inputs = {"object": object_hash(fed_object), "policy": policy_hash, "clusters": snapshot.content_hash}
    if profile_hash:
        inputs["profile"] = profile_hash
    if reserved:
        inputs["promised"] = content_hash(reserved)
    return inputs


def object_hash(fed_object: Mapping[str, Any]) -> str:
    """Return the hash of what a decision can depend on of the object that the user applied."""
    template, annotations = fed_object["spec"]["template"], fed_object["metadata"].get("annotations") or {}
    metadata = template.get("metadata") or {}
    content = {key: value for key, value in template.items() if key not in _NOT_CONTENT}
    said = {key: annotations[key] for key in _ANNOTATIONS if key in annotations}
    return _digest((content, metadata.get("labels"), metadata.get("annotations"), said))


def _digest(value: Any) -> str:
    return blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()
