"""Admission of WorkloadSpreads on the host: validation beyond the schema, and warnings.

The rules are those of a member (`incluster/`), except for the kinds of targets: the host divides the
replicas of federated kinds. Only changes of the spec are validated, so that an object that became invalid can still be
deleted.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from federation.admission.federatedobjects import FindResource
from federation.admission.policyselectors import ListObjects
from federation.admission.projectclusters import clusters_of
from federation.api.federatedtype import parse_configs
from federation.api.resources import FEDERATED_TYPE_CONFIGS, WORKLOAD_SPREADS
from federation.apimachinery.errors import BadRequest, invalid
from federation.apimachinery.resources import CRDS, Object, Resource, group_kind_of
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import CREATE, UPDATE, AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.apiserver.semantics.validation.podpatches import unknown_fields
from federation.features.workloadspread.rules.clusterterms import cluster_requirements, covers
from federation.features.workloadspread.rules.hub import field_in, to_hub
from federation.features.workloadspread.rules.references import CustomWorkload, Whitelist, group_of
from federation.features.workloadspread.rules.specvalidation import (
    SpreadRules,
    patch_warnings,
    validate_spread,
    validate_update,
)
from federation.features.workloadspread.rules.subsets import name_of, subsets_of, target_of
from federation.planning.typederivation import can_be_derived

ReadObject = Callable[[Resource, str, str], Awaitable[Object | None]]
"""Returns the stored object of a resource by name and namespace, None when there is none."""


class WorkloadSpreadAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state.

    The functions read the store; `rules` are Kubernetes' rules for parts of a WorkloadSpread.
    """

    resources = frozenset({WORKLOAD_SPREADS.group_resource})

    def __init__(
        self, find: FindResource, list_objects: ListObjects, read_object: ReadObject, rules: SpreadRules
    ) -> None:
        self._find = find
        self._list = list_objects
        self._read = read_object
        self._rules = rules

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:  # noqa: ARG002  # a plugin's signature
        """Raise BadRequest with the invalid fields; warn about subsets without clusters and about useless patches."""
        if request.subresource or request.operation not in (CREATE, UPDATE):
            return
        spread, old = to_hub(request.obj or {}), to_hub(request.old or {})
        if spread.get("spec") == old.get("spec") or spread["metadata"].get("deletionTimestamp"):
            return
        causes = validate_update(spread, old) if request.old is not None else []
        causes += validate_spread(
            spread,
            self._rules,
            others=await self._list(WORKLOAD_SPREADS, request.namespace),
            workload=await self._find_target(spread, request.namespace),
            whitelist=await self._custom_kinds(spread),
        )
        if causes:
            written = str((request.obj or {}).get("apiVersion") or "")
            causes = [{**cause, "field": field_in(written, cause["field"])} for cause in causes]
            error = invalid(WORKLOAD_SPREADS.kind, WORKLOAD_SPREADS.group, request.shown_name, causes)
            raise BadRequest(error.message, details=error.details)
        request.warnings.extend(patch_warnings(spread, unknown_fields))
        request.warnings.extend(_coverage_warnings(spread, await clusters_of(self._list, request.namespace)))

    async def _find_target(self, spread: Object, namespace: str) -> Object | None:
        target = target_of(spread)
        resource = self._find(str(target.get("apiVersion") or ""), str(target.get("kind") or ""))
        name = str(target.get("name") or "")
        return await self._read(resource, name, namespace) if resource is not None and name else None

    async def _custom_kinds(self, spread: Object) -> Whitelist:
        """Return the kind of the target as a whitelist if its replicas are or will be divided."""
        target = target_of(spread)
        group, kind = group_of(target), str(target.get("kind") or "")
        for type_ in parse_configs(await self._list(FEDERATED_TYPE_CONFIGS, "")):
            if (type_.resource.group, type_.resource.kind) == (group, kind):
                return _of(group, kind) if type_.paths.replicas_spec else Whitelist()
        is_known = can_be_derived(group_kind_of(target), await self._list(CRDS, ""), is_cluster_wide=True)
        return _of(group, kind) if is_known else Whitelist()


def _of(group: str, kind: str) -> Whitelist:
    return Whitelist((CustomWorkload(group, "", kind),))


def _coverage_warnings(spread: Object, clusters: Sequence[Object]) -> Iterable[str]:
    """Yield a warning for each subset that covers none of the clusters."""
    labels = {str(each["metadata"]["name"]): each["metadata"].get("labels") or {} for each in clusters}
    for index, subset in enumerate(subsets_of(spread)):
        requirements = cluster_requirements(subset)
        if requirements and not any(covers(requirements, name, own) for name, own in labels.items()):
            yield f"spec.subsets[{index}]: no cluster matches the expressions on clusters of subset {name_of(subset)}"
