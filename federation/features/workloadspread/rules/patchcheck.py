"""Patches of WorkloadSpreads against workloads that came or changed after them. Pure, except for its cache.

Admission checks a patch when it is written. A workload that is created or changed later can make it invalid. Nobody may
refuse that workload, so the controllers report it: in a member, and on the host. The check of a patch costs
milliseconds, so its result is kept for as long as both objects stay the same.
"""

from collections import OrderedDict
from typing import Any

from federation.apimachinery.resources import Object
from federation.features.workloadspread.rules.specvalidation import SpreadRules, validate_patches

_KEPT_MAX = 4096
"""WorkloadSpreads whose result is kept; the others are checked at each reconcile."""
_SHOWN_MAX = 3
"""Causes in one text."""


class PatchCheck:
    """Checks patches against existing workloads."""

    def __init__(self, rules: SpreadRules, *, kept_max: int = _KEPT_MAX) -> None:
        self._rules = rules
        self._kept_max = kept_max
        self._known: OrderedDict[str, tuple[Any, str]] = OrderedDict()

    def problem(self, spread: Object, workload: Object | None) -> str:
        """Return why pods with a patch are invalid, with the fields; "" when they are not.

        `spread` has the form of v1beta1. `workload` is None if it does not exist.
        """
        metadata = spread["metadata"]
        version = (metadata.get("generation"), *_version(workload))
        uid = str(metadata.get("uid") or "")
        known = self._known.get(uid)
        if known is not None and known[0] == version:
            return known[1]
        causes = validate_patches(spread, self._rules, workload)
        text = "; ".join(f"{cause['field']}: {cause['message']}" for cause in causes[:_SHOWN_MAX])
        self._known[uid] = (version, text)
        self._known.move_to_end(uid)
        if len(self._known) > self._kept_max:
            self._known.popitem(last=False)
        return text


def _version(workload: Object | None) -> tuple[Any, ...]:
    metadata = (workload or {}).get("metadata") or {}
    return metadata.get("uid"), metadata.get("generation")
