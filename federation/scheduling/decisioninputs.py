"""Hashes of a decision's inputs, so that two decisions can be compared.

There is one hash per input: `fedctl why --diff` can then report that the policy changed and the clusters did not. The
object's hash covers manifest, labels and annotations; its placement is in the explanation. Policies, profiles and
snapshots are hashed once, not per decision. Pure.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import orjson

from federation.api import names
from federation.scheduling.framework.assumed import hash_of_assumed
from federation.scheduling.framework.types import Assumed
from federation.scheduling.names import QUEUE_ADMISSION
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.triggers import HASHED_ANNOTATIONS

_ANNOTATIONS = (*HASHED_ANNOTATIONS, names.AUTO_MIGRATION_INFO, QUEUE_ADMISSION)
_NOT_CONTENT = frozenset(("metadata", "status"))


def inputs_of(
    federated: Mapping[str, Any],
    snapshot: Snapshot,
    *,
    policy_hash: str,
    profile_hash: str = "",
    assumed: Assumed | None = None,
) -> dict[str, str]:
    """Return the hash of each input; of a profile that is not the default, of assumed replicas if any."""
    inputs = {"object": object_hash(federated), "policy": policy_hash, "clusters": snapshot.content_hash}
    if profile_hash:
        inputs["profile"] = profile_hash
    if assumed:
        inputs["promised"] = hash_of_assumed(assumed)
    return inputs


def object_hash(federated: Mapping[str, Any]) -> str:
    """Return the hash of everything in the user's object that a decision can depend on."""
    template, annotations = federated["spec"]["template"], federated["metadata"].get("annotations") or {}
    metadata = template.get("metadata") or {}
    content = {key: value for key, value in template.items() if key not in _NOT_CONTENT}
    scheduling = {key: annotations[key] for key in _ANNOTATIONS if key in annotations}
    return _digest((content, metadata.get("labels"), metadata.get("annotations"), scheduling))


def _digest(value: Any) -> str:
    return blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()
