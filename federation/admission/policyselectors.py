"""Admission of policies: which kinds namespace users may steer, and warnings about what does not exist.

The rights that `resourceSelectors` need are checked in `selectedkinds.py`.

Warnings name nothing that the requester may not read: policies that compete are named to users who may get them. Names
of clusters are no secret from authors of policies, because decisions about their objects list all clusters: in the
namespaces of a project, those of the project.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import orjson

from federation.admission.federatedobjects import FindResource
from federation.admission.hosteffects import acting_kinds, ended_effects
from federation.admission.projectclusters import clusters_of
from federation.admission.rolloutgates import gate_causes, kind_causes, objective_causes
from federation.admission.selectedkinds import check_selected
from federation.api.federatedtype import parse_configs
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.effect import EffectOf
from federation.apimachinery.errors import ApiError, cause, invalid
from federation.apimachinery.publicaddresses import Network
from federation.apimachinery.resources import CRDS, GroupKind, Object, Resource, group_kind_of
from federation.apimachinery.selectors import SelectorError
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide
from federation.planning.failover.application import compile_state
from federation.planning.failover.handover import rule_problems
from federation.planning.overrides.budget import patches_problem, rollout_problem
from federation.planning.overrides.policymatching import guarded_selectors
from federation.planning.typederivation import can_be_derived
from federation.planning.waves.metricsources import NO_SOURCES, Sources
from federation.planning.waves.policychanges import FIELD as CHANGE_FIELD
from federation.planning.waves.policychanges import SPEC_BYTES_MAX, content_of
from federation.planning.waves.waverules import to_annotation
from federation.scheduling.policyreferences import named_clusters, reference_warnings
from federation.scheduling.policyspec import compile_resource_selectors
from federation.scheduling.policywarnings import policy_warnings

_NAMESPACED = (OVERRIDE_POLICIES, PROPAGATION_POLICIES)
_CLUSTER_WIDE = (CLUSTER_OVERRIDE_POLICIES, CLUSTER_PROPAGATION_POLICIES)
ListObjects = Callable[[Resource, str], Awaitable[Sequence[Object]]]
"""Returns the stored objects of a resource in a namespace ("" for all)."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The objects of the host, as far as the requester may know of them."""

    clusters: Mapping[str, Mapping[str, str]]
    kinds: frozenset[GroupKind]
    policies: Sequence[Object]


class PolicyAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state; `list_objects` reads the store."""

    resources = frozenset(resource.group_resource for resource in (*_NAMESPACED, *_CLUSTER_WIDE))

    def __init__(
        self,
        find: FindResource,
        list_objects: ListObjects,
        gate_networks: Sequence[Network] = (),
        effect_of: EffectOf | None = None,
        metric_sources: Sources = NO_SOURCES,
    ) -> None:
        """`gate_networks` are those that gates may reach beside global unicast addresses.

        `metric_sources` are those that their objectives may name.

        `effect_of` is given for a host that keeps the configurations that policies select as data.
        """
        self._find = find
        self._list = list_objects
        self._gate_networks = gate_networks
        self._metric_sources = metric_sources
        self._effect_of = effect_of

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise Invalid for a gate of a rollout that cannot work, and for patches or waves that are too large.

        Raise Forbidden unless the requester may update every kind that a policy of a namespace selects. Adds warnings
        to the response.
        """
        policy = request.obj or {}
        if not request.changes_spec:
            return
        spec = policy.get("spec") or {}
        rollout = spec.get("rollout") or {}
        causes = [*kind_causes(spec), *gate_causes(rollout, self._gate_networks)]
        causes += objective_causes(rollout, self._metric_sources, request.namespace)
        causes += objective_causes(
            spec.get(CHANGE_FIELD) or {}, self._metric_sources, request.namespace, f"spec.{CHANGE_FIELD}"
        )
        causes += _state_causes(spec)
        if causes := [*causes, *_size_causes(request, spec)]:
            raise invalid(request.resource.kind, request.resource.group, request.name, causes)
        if request.resource in _NAMESPACED:
            selectors = spec.get("resourceSelectors") or ()
            check_selected(request, access, self._find, selectors, "spec.resourceSelectors")
        if request.resource == OVERRIDE_POLICIES and (guarded := guarded_selectors(policy)):
            request.warnings.append(f"{guarded}: nothing of it is overridden")
        request.warnings.extend(_change_warnings(request, policy))
        if request.resource in (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES):
            request.warnings.extend(policy_warnings(policy))
        try:
            known = await self._read(request, policy, access)
            found = await self._ended_effects(request, policy)
        except ApiError:
            return  # A policy is not refused because a warning could not be computed.
        found += reference_warnings(policy, known.clusters, known.kinds, known.policies)
        request.warnings.extend(text for text in found if text not in request.warnings)

    async def _ended_effects(self, request: AdmissionRequest, policy: Object) -> list[str]:
        """Return warnings about objects that a cluster-wide policy turns into data of the host."""
        if self._effect_of is None or request.resource != CLUSTER_PROPAGATION_POLICIES:
            return []
        try:
            selectors = compile_resource_selectors(policy)
        except (SelectorError, ValueError, TypeError):
            return []
        stored = {resource: await self._list(resource, "") for resource in acting_kinds(selectors)}
        return ended_effects(selectors, stored, self._effect_of)

    async def _read(self, request: AdmissionRequest, policy: Object, access: Decide) -> _Known:
        clusters: dict[str, Mapping[str, str]] = {}
        configs, policies = [], []
        has_selectors = bool((policy.get("spec") or {}).get("resourceSelectors"))
        if named_clusters(policy) or (policy.get("spec") or {}).get("rollout"):
            found = (item["metadata"] for item in await clusters_of(self._list, request.namespace))
            clusters = {metadata["name"]: metadata.get("labels") or {} for metadata in found}
        if has_selectors:
            configs = parse_configs(await self._list(FEDERATED_TYPE_CONFIGS, ""))
        if has_selectors and request.resource in (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES):
            # A cluster-wide policy is not compared with those of all namespaces, which are to take precedence.
            scopes = [(CLUSTER_PROPAGATION_POLICIES, "")]
            if request.namespace:
                scopes.append((PROPAGATION_POLICIES, request.namespace))
            for resource, namespace in scopes:
                check = AccessCheck("get", resource.group, resource.plural, namespace=namespace)
                policies += [
                    item
                    for item in await self._list(resource, namespace)
                    if access(check._replace(name=item["metadata"]["name"])).is_allowed
                ]
        kinds = {type_.resource.group_kind for type_ in configs}
        if request.resource in (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES):
            kinds |= await self._derivable(request, policy, kinds)
        return _Known(clusters, frozenset(kinds), policies)

    async def _derivable(
        self, request: AdmissionRequest, policy: Object, kinds: AbstractSet[GroupKind]
    ) -> set[GroupKind]:
        """Return the selected kinds for which the control plane creates a FederatedTypeConfig."""
        selectors = (policy.get("spec") or {}).get("resourceSelectors") or ()
        selected = {group_kind_of(each) for each in selectors} - kinds
        definitions = await self._list(CRDS, "") if selected else ()
        is_cluster_wide = request.resource == CLUSTER_PROPAGATION_POLICIES
        return {each for each in selected if can_be_derived(each, definitions, is_cluster_wide=is_cluster_wide)}


def _state_causes(spec: Object) -> list[Object]:
    """Return field errors of the state that a copy hands over."""
    failover = spec.get("failover") or {}
    places = {"spec.failover": failover, "spec.failover.application": failover.get("application") or {}}
    return [
        cause("FieldValueInvalid", f"Invalid value: {text}", f"{place}.{field}")
        for place, source in places.items()
        for field, text in rule_problems(compile_state(source.get("statePreservation")))
    ]


def _size_causes(request: AdmissionRequest, spec: Object) -> list[Object]:
    """Return field errors for what is copied into each object of the policy and is too large."""
    annotation = to_annotation(f"{request.resource.kind} {request.namespace}/{request.name}", spec.get("rollout"))
    problems = [("spec.rollout", rollout_problem(annotation)), patches_problem(spec)]
    if spec.get(CHANGE_FIELD) and len(orjson.dumps(spec)) > SPEC_BYTES_MAX:
        text = (
            f"a policy with it has at most {SPEC_BYTES_MAX // 1024} KiB, because its earlier version is kept beside it"
        )
        problems.append((f"spec.{CHANGE_FIELD}", f"{text}; make the policy smaller, or remove this field"))
    return [cause("FieldValueTooLong", f"Too long: {text}", field) for field, text in problems if text]


def _change_warnings(request: AdmissionRequest, policy: Object) -> list[str]:
    """Return a warning about a change that comes with the rules for changes: there is no version to hold it by."""
    old = request.old
    if old is None or not (policy.get("spec") or {}).get(CHANGE_FIELD) or (old.get("status") or {}).get(CHANGE_FIELD):
        return []
    if content_of(old) == content_of(policy):
        return []
    text = (
        "it is new, so this change reaches all objects at once, and later ones go in waves; apply the field alone first"
    )
    return [f"spec.{CHANGE_FIELD}: {text}"]
