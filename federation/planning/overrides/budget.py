"""How many bytes policies may put into one federated object. Pure.

A policy is stored once and copied into every object that it selects. Without a limit, a small policy and many small
objects fill the store and the memory of the control plane. Overrides may be as large as the object itself in every
cluster, because some of them replace whole maps and lists of it, and the policies may add `POLICY_BYTES_MAX`.

`policies.py` and `entries.py` apply the limits to objects, `admission/policyselectors.py` to policies.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.patches import ClusterPatches, Patch

POLICY_BYTES_MAX: Final = 64 * 1024
"""JSON bytes: of `spec.rollout`, of a policy's patches of any field for one cluster, and of all overrides of one object
beyond its own size in every cluster. A thousand names of clusters are a third of it."""
CLUSTER_BYTES_MIN: Final = 4 * 1024
"""The overrides that an object may have in every cluster, however small it is: twenty patches of an image."""

_COPIED: Final = ("jsonpatch", "fields")
"""The overriders whose values are copied as they are."""
_SHORTEN = "shorten the patches, or change the objects themselves"


def size_of(value: Any) -> int:
    """Return the JSON bytes of a value."""
    return len(orjson.dumps(value))


class PatchBudget:
    """The bytes that the overrides of one object may have in all clusters together, and those taken by policy."""

    def __init__(self, template: Mapping[str, Any], clusters: int) -> None:
        self.bytes_max = POLICY_BYTES_MAX + clusters * max(CLUSTER_BYTES_MIN, size_of(template))
        self._taken: Counter[str] = Counter()

    @property
    def left(self) -> int:
        """The bytes that may still be taken; negative when there are too many."""
        return self.bytes_max - self._taken.total()

    def take(self, sizes: Mapping[str, int]) -> None:
        """Count bytes of patches by policy; OverrideError when there are too many, which names the largest policy."""
        self._taken.update(sizes)
        if self.left < 0:
            policy, size = max(self._taken.items(), key=lambda item: (item[1], item[0]))
            raise OverrideError(
                f"all overrides of this object have {self._taken.total():,} bytes or more, {size:,} of them from this"
                f" policy, and the limit is {self.bytes_max:,}; {_SHORTEN}",
                "spec.overrideRules",
            ).of(policy)


def merged_problem(
    template: Mapping[str, Any], clusters: int, overrides: Mapping[str, Any], policies: Sequence[str]
) -> OverrideError | None:
    """Return an error if new overrides and the earlier ones that some clusters keep are too large together.

    Without this rule, policies that fail in one cluster after the other would fill each of them alone.
    """
    size, bytes_max = size_of(list(overrides.values())), PatchBudget(template, clusters).bytes_max
    if size <= bytes_max:
        return None
    text = (
        f"all overrides of this object, with the earlier ones that clusters keep, have {size:,} bytes, and the limit is"
        f" {bytes_max:,}; {_SHORTEN}"
    )
    return OverrideError(text, "spec.overrideRules").of(policies[0] if policies else "override policies")


def grown_clusters(overrides: ClusterPatches, stored: Mapping[str, Sequence[Patch]]) -> list[str]:
    """Return the clusters with more bytes of overrides than are stored. Null values do not count, as for changes."""
    return [name for name, patches in overrides.items() if _size(patches) > _size(stored.get(name, ()))]


def _size(patches: Iterable[Patch]) -> int:
    return size_of([{key: value for key, value in patch.items() if value is not None} for patch in patches])


def no_room(policies: Sequence[str]) -> OverrideError:
    """Return the error of an object whose namespace stores more bytes than it may."""
    text = "the namespace stores more bytes than it may, so overrides cannot grow; delete objects, or raise its limit"
    return OverrideError(text, "spec.overrideRules").of(policies[0] if policies else "override policies")


def rollout_problem(annotation: str | None) -> str:
    """Return what is wrong with the size of the annotation made of a policy's `spec.rollout`, "" if nothing is."""
    size = len((annotation or "").encode())
    if size <= POLICY_BYTES_MAX:
        return ""
    return (
        f"the waves have {size:,} bytes, each workload of the policy gets a copy, and the limit is"
        f" {POLICY_BYTES_MAX:,}; select clusters by clusterSelector instead of by name, or shorten the gates"
    )


def patches_problem(spec: Mapping[str, Any]) -> tuple[str, str]:
    """Return field and reason if the patches for one cluster alone are too large, ("", "") if they are not.

    `spec` is that of an override policy. The rules for all clusters count together with the largest for some clusters.
    """
    everywhere: list[tuple[int, int]] = []
    somewhere: list[tuple[int, int]] = []
    for index, rule in enumerate(spec.get("overrideRules") or ()):
        counted = somewhere if any((rule.get("targetClusters") or {}).values()) else everywhere
        overriders = rule.get("overriders") or {}
        counted.append((sum(size_of(overriders[key]) for key in _COPIED if overriders.get(key)), index))
    counted = [*everywhere, max(somewhere, default=(0, 0))]
    size = sum(each for each, _ in counted)
    if size <= POLICY_BYTES_MAX:
        return "", ""
    reason = (
        f"the patches for one cluster have {size:,} bytes, each object of the policy gets a copy, and the limit is"
        f" {POLICY_BYTES_MAX:,}; {_SHORTEN}"
    )
    index = max(counted)[1]
    overriders = spec["overrideRules"][index]["overriders"]
    field = max(_COPIED, key=lambda key: size_of(overriders.get(key) or ()))
    return f"spec.overrideRules[{index}].overriders.{field}", reason
