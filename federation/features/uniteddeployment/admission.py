"""Admission of UnitedDeployments: defaults, what their schema cannot check, and what their author may create.

The control plane writes the workloads of the subsets as the author, when he is gone. So he needs the permissions to
create and to patch them, and each of them is submitted to the host's quotas and admission at once. The defaults of pods
are filled into a copy before pods are validated, as an API server does for a workload.
"""

import contextlib
import copy
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from federation.admission.federatedobjects import forbidden
from federation.admission.policyselectors import ListObjects
from federation.admission.projectclusters import clusters_of
from federation.api import names
from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    PROPAGATION_POLICIES,
    UNITED_DEPLOYMENTS,
)
from federation.apimachinery.errors import AlreadyExists, NotFound, invalid
from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.resources import Object, Resource, UserInfo
from federation.apiserver.admission.requests import CREATE, UPDATE, AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide
from federation.apiserver.semantics.defaults.poddefaults import default_template
from federation.apiserver.semantics.schema import builtin
from federation.apiserver.semantics.schema.validation import validate
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.apiserver.semantics.validation.podvalidation import validate_template
from federation.apiserver.semantics.validation.selectorvalidation import (
    validate_label_selector,
    validate_node_term,
    validate_toleration,
)
from federation.features.uniteddeployment.rules.clustertargets import ClusterName, policy_labels, registered_clusters
from federation.features.uniteddeployment.rules.subsettemplate import Target, render_workload
from federation.features.uniteddeployment.rules.uniteddefaults import default_united
from federation.features.uniteddeployment.rules.unitedvalidation import (
    UnitedRules,
    deletion_problem,
    validate_united,
    validate_update,
)
from federation.features.uniteddeployment.rules.workloadkinds import WorkloadKind, kind_of

Review = Callable[[Resource, Object, UserInfo], Awaitable[Any]]
"""Submits an object to the host's admission as a dry run of a user; ApiError when it is refused."""
_PROPAGATION_LABELS = {names.PROPAGATION_POLICY_LABEL, names.CLUSTER_PROPAGATION_POLICY_LABEL}


def _pod_template(template: Mapping[str, Any], field: str) -> Causes:
    schema = builtin.builtin_schema("", "v1", "PodTemplate").child("template")
    assert schema is not None
    if causes := validate(schema, template, field):
        return causes
    defaulted = copy.deepcopy(dict(template))
    default_template(defaulted)
    return validate_template(defaulted, field)


def _workloads(united: Object, kind: WorkloadKind, request: AdmissionRequest) -> Iterator[Object]:
    """Yield the workload of each subset, with the replicas of none."""
    metadata = {"uid": request.uid, **united["metadata"], "namespace": request.namespace}
    for subset in united["spec"]["topology"]["subsets"]:
        target = Target(revision="", replicas=0)
        yield render_workload({**united, "metadata": metadata}, subset, kind, target, patch_pod)


RULES = UnitedRules(
    label_selector=validate_label_selector,
    required_term=partial(validate_node_term, strict=True),
    toleration=validate_toleration,
    pod_template=_pod_template,
)


class UnitedDeploymentAdmission:
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state.

    On a host, `list_objects` reads FederatedClusters, among which target clusters must be, and policies, without which
    no workload is placed, and `review` submits a workload. A cluster without `list_objects` ignores target clusters.
    """

    resources = frozenset({UNITED_DEPLOYMENTS.group_resource})

    def __init__(self, list_objects: ListObjects | None = None, review: Review | None = None) -> None:
        self._list = list_objects
        self._review = review

    def mutate(self, request: AdmissionRequest) -> Object:
        """Fill in defaults; the server itself keeps the status out of such writes."""
        obj = request.obj or {}
        if request.subresource or request.operation not in (CREATE, UPDATE):
            return obj
        return {**default_united(obj), **({"status": obj["status"]} if "status" in obj else {})}

    def deletion_problem(self, obj: Object) -> str:
        """Return why a label protects the object from deletion, "" if none does."""
        return deletion_problem(obj)

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise Invalid when the spec cannot be realised, or an update changes what is fixed.

        Raise what the host answers to the requester who creates the workloads, Forbidden without permission.

        A change that leaves the spec as it is, such as one of labels, is not validated.
        """
        obj, old = request.obj or {}, request.old
        if not request.changes_spec:
            return
        causes = validate_united(obj, RULES, clusters=await self._registered(obj, request.namespace))
        if old is not None:
            causes += validate_update(obj, old)
        if causes:
            raise invalid(UNITED_DEPLOYMENTS.kind, UNITED_DEPLOYMENTS.group, request.shown_name, causes)
        kind = kind_of((obj.get("spec") or {}).get("template") or {})
        if self._review is not None and kind is not None:
            self._check_rights(request, kind, access)
            for workload in _workloads(obj, kind, request):
                with contextlib.suppress(AlreadyExists, NotFound):  # its name is taken; the kind is not served
                    await self._review(kind.resource, workload, request.user)
        if self._list is not None and not await self._is_placed(self._list, obj, request.namespace):
            request.warnings.append(
                f"no policy places the workloads of the subsets: set the label {names.PROPAGATION_POLICY_LABEL} or"
                f" {names.CLUSTER_PROPAGATION_POLICY_LABEL}"
            )

    @staticmethod
    def _check_rights(request: AdmissionRequest, kind: WorkloadKind, access: Decide) -> None:
        resource = kind.resource
        for verb in ("create", "patch"):
            if not access(AccessCheck(verb, resource.group, resource.plural, namespace=request.namespace)).is_allowed:
                user = request.user.get("username", "")
                text = (
                    f'User "{user}" cannot {verb} {resource.group_resource} in the namespace'
                    f' "{request.namespace}", which the control plane would {verb} for the subsets; get that permission'
                )
                raise forbidden(request, text, field="spec.template")

    @staticmethod
    async def _is_placed(list_objects: ListObjects, united: Object, namespace: str) -> bool:
        """Return whether a label names a policy, or a policy selects workloads of this kind here."""
        kind = kind_of((united.get("spec") or {}).get("template") or {})
        if kind is None or policy_labels(united, kind).keys() & _PROPAGATION_LABELS:
            return True
        policies = [
            *await list_objects(PROPAGATION_POLICIES, namespace),
            *await list_objects(CLUSTER_PROPAGATION_POLICIES, ""),
        ]
        selectors = [entry for each in policies for entry in (each.get("spec") or {}).get("resourceSelectors") or ()]
        return any(entry.get("kind") == kind.resource.kind for entry in selectors)

    async def _registered(self, united: Object, namespace: str) -> Collection[ClusterName] | None:
        if self._list is None:
            return None
        return registered_clusters(united.get("spec") or {}, await clusters_of(self._list, namespace))
