"""Compile override policies, and compute the patches of every cluster (docs/reference/overrides.md).

For each cluster the matching rules of all policies run in order on a working copy of the template. Clusters with the
same matching rules share one computation. Policy references by label are also here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery.resources import UserInfo
from federation.apimachinery.selectors import Labels
from federation.planning.authors import authors_of
from federation.planning.overrides.budget import PatchBudget, size_of
from federation.planning.overrides.containers import compute_command_patches, compute_env_patches
from federation.planning.overrides.documents import DocumentEditor
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.image import compute_image_patches
from federation.planning.overrides.metadata import compute_metadata_patches
from federation.planning.overrides.patches import ClusterPatches, Patches, apply_patches
from federation.planning.overrides.targets import Target, compile_target
from federation.planning.waves.waverules import to_annotation

_FINALIZERS = "/metadata/finalizers"
_Matching = tuple[tuple[int, int], ...]
"""The positions of policies, and of their rules, that match a cluster."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One override rule: target clusters and overriders."""

    target: Target
    overriders: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PolicyReference:
    """A policy by name; `namespace` is "" for a ClusterOverridePolicy."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def display(self) -> str:
        """`OverridePolicy "ns/name"` or `ClusterOverridePolicy "name"`."""
        kind = "OverridePolicy" if self.namespace else "ClusterOverridePolicy"
        return f'{kind} "{self}"'


@dataclass(frozen=True, slots=True)
class Policy:
    """A compiled OverridePolicy or ClusterOverridePolicy."""

    reference: PolicyReference
    rules: tuple[Rule, ...]
    rollout: str | None = None
    """The annotation with its rollout rules, None without any."""
    authors: tuple[UserInfo, ...] = ()

    @property
    def display(self) -> str:
        """The policy's kind and name for messages."""
        return self.reference.display


@dataclass(frozen=True, slots=True)
class Cluster:
    """The properties of a cluster that rules match."""

    name: str
    labels: Labels


class _Computed(NamedTuple):
    """The patches of clusters with the same matching rules, and their bytes by policy."""

    patches: Patches
    sizes: Mapping[str, int]


def compile_policy(policy: Mapping[str, Any]) -> Policy:
    """Return the compiled policy. Malformed parts raise only when they are computed for an object."""
    metadata, spec = policy.get("metadata") or {}, policy.get("spec") or {}
    reference = PolicyReference(metadata.get("namespace", ""), metadata.get("name", ""))
    kind = "OverridePolicy" if reference.namespace else "ClusterOverridePolicy"
    rollout = to_annotation(f"{kind} {reference}", spec.get("rollout"))
    return Policy(reference, compile_rules(spec.get("overrideRules")), rollout, tuple(authors_of(policy)))


def compile_rules(rules: Iterable[Mapping[str, Any]] | None) -> tuple[Rule, ...]:
    """Return the compiled `overrideRules`."""
    return tuple(Rule(compile_target(rule.get("targetClusters")), rule.get("overriders") or {}) for rule in rules or ())


def compute_overrides(
    template: dict[str, Any],
    policies: Sequence[Policy],
    clusters: Iterable[Cluster],
    failures: dict[str, OverrideError] | None = None,
) -> ClusterPatches:
    """Return the patches of every cluster.

    An OverrideError names policy, rule and field. It is put into `failures` under the name of its cluster, which has
    no patches then, and the other clusters are computed; without `failures` the first error is raised. When all
    patches together are too large (`budget.py`), every cluster with a matching rule fails.
    """
    placed = list(clusters)
    failed: dict[str, OverrideError] = {}
    matching: dict[str, _Matching] = {}
    for cluster in placed:
        try:
            matching[cluster.name] = tuple(_matching(policies, cluster))
        except OverrideError as error:
            failed[cluster.name] = error
    result = _compute_matching(template, policies, {name: each for name, each in matching.items() if each}, failed)
    if failures is not None:
        failures.update(failed)
    elif failed:
        raise next(failed[cluster.name] for cluster in placed if cluster.name in failed)
    return result


def _compute_matching(
    template: dict[str, Any],
    policies: Sequence[Policy],
    matching: Mapping[str, _Matching],
    failed: dict[str, OverrideError],
) -> ClusterPatches:
    """Return the patches of clusters by their matching rules, of which there is at least one each."""
    if not matching:
        return {}
    budget = PatchBudget(template, len(matching))
    editor = DocumentEditor()
    computed: dict[_Matching, _Computed | OverrideError] = {}
    result: ClusterPatches = {}
    try:
        # Every object records the policies that it has overrides from.
        applied = {position for each in matching.values() for position, _ in each}
        budget.take({policies[position].display: len(str(policies[position].reference)) for position in applied})
        for cluster, rules in matching.items():
            if rules not in computed:
                # Clusters with the same matching rules share one computation.
                computed[rules] = _try_compute(template, policies, rules, budget.left, editor)
            found = computed[rules]
            if isinstance(found, OverrideError):
                failed[cluster] = found
                continue
            budget.take(found.sizes)
            if found.patches:
                result[cluster] = found.patches
    except OverrideError as error:
        # As for one patch of a cluster: none of the overrides, rather than some of them.
        failed.update(dict.fromkeys(matching, error))
        return {}
    return result


def _try_compute(
    template: dict[str, Any], policies: Sequence[Policy], matching: _Matching, bytes_max: int, editor: DocumentEditor
) -> _Computed | OverrideError:
    try:
        return _compute(template, policies, matching, bytes_max, editor)
    except OverrideError as error:
        return error


def _matching(policies: Sequence[Policy], cluster: Cluster) -> Iterable[tuple[int, int]]:
    for position, policy in enumerate(policies):
        for index, rule in enumerate(policy.rules):
            try:
                is_matched = rule.target.matches(cluster.name, cluster.labels)
            except OverrideError as error:
                raise error.within(f"spec.overrideRules[{index}]").of(policy.display) from error
            if is_matched:
                yield position, index


def _compute(
    template: dict[str, Any], policies: Sequence[Policy], matching: _Matching, bytes_max: int, editor: DocumentEditor
) -> _Computed:
    """Return the patches of the rules. Those beyond `bytes_max` are sized and not applied, and the rest is left out."""
    working_copy = template
    patches: Patches = []
    sizes: Counter[str] = Counter()
    for position, index in matching:
        policy = policies[position]
        try:
            added = list(_rule_patches(working_copy, policy.rules[index].overriders, editor))
            sizes[policy.display] += size_of([patch for _, patch in added]) if added else 0
            if sizes.total() > bytes_max:
                break
            # The working copy does not have the template's finalizers; those patches apply to member objects only.
            own = [(field, patch) for field, patch in added if not patch["path"].startswith(_FINALIZERS)]
            working_copy = apply_patches(working_copy, [patch for _, patch in own], [field for field, _ in own])
        except OverrideError as error:
            raise error.within(f"spec.overrideRules[{index}].overriders").of(policy.display) from error
        patches += (patch for _, patch in added)
    return _Computed(patches, sizes)


def _rule_patches(
    template: Mapping[str, Any], overriders: Mapping[str, Any], editor: DocumentEditor
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the patches of one rule, each with the field that it is computed from, all from the same template."""
    if image := overriders.get("image"):
        yield from _of("image", compute_image_patches(template, image))
    for field in ("command", "args"):
        if changes := overriders.get(field):
            yield from _of(field, compute_command_patches(template, changes, field))
    if envs := overriders.get("envs"):
        yield from _of("envs", compute_env_patches(template, envs))
    for field in ("annotations", "labels"):
        yield from _of(field, compute_metadata_patches(template, overriders.get(field) or (), field))
    if fields := overriders.get("fields"):
        yield from _of("fields", editor.patches(template, fields))
    for number, overrider in enumerate(overriders.get("jsonpatch") or ()):
        yield f"jsonpatch[{number}]", _to_patch(overrider)


def _of(field: str, patches: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((field, patch) for patch in patches)


def _to_patch(overrider: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {"path": overrider.get("path") or ""}
    if operator := overrider.get("operator"):
        patch["op"] = operator
    if "value" in overrider:
        patch["value"] = overrider["value"]
    return patch


def applied_policies(policies: Sequence[Policy], clusters: Sequence[Cluster]) -> list[PolicyReference]:
    """Return the policies with a rule that matches one of the clusters; their targets are valid."""
    return [
        policy.reference
        for policy in policies
        if any(rule.target.matches(cluster.name, cluster.labels) for rule in policy.rules for cluster in clusters)
    ]


def stored_policies(federated: Mapping[str, Any]) -> list[PolicyReference]:
    """Return the policies behind the stored overrides of a federated object; none if the record is missing."""
    text = (federated["metadata"].get("annotations") or {}).get(names.OVERRIDE_POLICIES) or ""
    parts = (entry.rpartition("/") for entry in text.split(",") if entry)
    return [PolicyReference(namespace, name) for namespace, _, name in parts]


def labelled_policies(labels: Labels | None, namespace: str) -> tuple[PolicyReference | None, PolicyReference | None]:
    """Return the cluster-wide and the namespaced policy of the object's labels, None without a label.

    OverrideError for an empty label. Objects without a namespace have no namespaced policy.
    """
    present = labels or {}
    for label in (names.CLUSTER_OVERRIDE_POLICY_LABEL, names.OVERRIDE_POLICY_LABEL):
        if present.get(label) == "" and (namespace or label == names.CLUSTER_OVERRIDE_POLICY_LABEL):
            raise OverrideError(f"the label {label} is empty")
    cluster_wide = present.get(names.CLUSTER_OVERRIDE_POLICY_LABEL)
    namespaced = present.get(names.OVERRIDE_POLICY_LABEL) if namespace else None
    return (
        PolicyReference("", cluster_wide) if cluster_wide else None,
        PolicyReference(namespace, namespaced) if namespaced else None,
    )
