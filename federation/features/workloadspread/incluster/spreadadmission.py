"""Admission of WorkloadSpreads: validation beyond the schema, and warnings about patches.

Only changes of the spec are validated, so that an object that became invalid can still be deleted.
"""

from functools import partial

from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.errors import ApiError, BadRequest, ClusterError, invalid
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.validation.podpatches import (
    unknown_fields,
    validate_lone_patch,
    validate_patched_pod,
)
from federation.apiserver.semantics.validation.selectorvalidation import (
    validate_label_selector,
    validate_node_term,
    validate_toleration,
)
from federation.features.workloadspread.incluster.reviews import ReviewAnswer
from federation.features.workloadspread.incluster.targetworkloads import Workloads
from federation.features.workloadspread.rules.hub import field_in, to_hub
from federation.features.workloadspread.rules.specvalidation import (
    SpreadRules,
    patch_warnings,
    validate_spread,
    validate_update,
)
from federation.runtime.informer import Informer

RULES = SpreadRules(
    label_selector=validate_label_selector,
    required_term=partial(validate_node_term, strict=True),
    preferred_term=partial(validate_node_term, strict=False),
    toleration=validate_toleration,
    patched_pod=validate_patched_pod,
    lone_patch=validate_lone_patch,
)
"""Kubernetes' rules for parts of a WorkloadSpread, in members and on the host."""


class SpreadAdmission:
    """Handler of reviews of WorkloadSpreads (`reviews.py`) in one cluster."""

    def __init__(self, spreads: Informer, workloads: Workloads) -> None:
        self._spreads = spreads
        self._workloads = workloads

    async def admit(self, request: Object) -> ReviewAnswer:
        """Admit a valid WorkloadSpread, with warnings about fields that its patches lose; BadRequest."""
        spread, old = to_hub(request.get("object") or {}), to_hub(request.get("oldObject") or {})
        if spread.get("spec") == old.get("spec") or (spread.get("metadata") or {}).get("deletionTimestamp"):
            return ReviewAnswer()
        namespace = str(request.get("namespace") or "")
        spread = {**spread, "metadata": {**(spread.get("metadata") or {}), "namespace": namespace}}
        causes = validate_update(spread, old) if request.get("oldObject") else []
        causes += validate_spread(
            spread,
            RULES,
            others=self._spreads.list(namespace),
            workload=await self._find_target(spread),
            whitelist=self._workloads.whitelist,
        )
        if causes:
            written = str((request.get("object") or {}).get("apiVersion") or "")
            causes = [{**cause, "field": field_in(written, cause["field"])} for cause in causes]
            name = str(spread["metadata"].get("name") or "")
            error = invalid(WORKLOAD_SPREADS.kind, WORKLOAD_SPREADS.group, name, causes)
            raise BadRequest(error.message, details=error.details)
        return ReviewAnswer(warnings=tuple(patch_warnings(spread, unknown_fields)))

    async def _find_target(self, spread: Object) -> Object | None:
        try:
            return await self._workloads.find_target(spread)
        except (ApiError, ClusterError):  # then its patches are not checked against the pods
            return None
