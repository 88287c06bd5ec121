"""Warnings about what a policy refers to: clusters and kinds that do not exist, and policies that compete with it.

The policy stays in force: what it names may be created later. Works for propagation and override policies. Pure; the
host's admission puts the warnings into the response, and the schedule controller emits them as events.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from federation.api.selectors import compile_cluster_terms
from federation.apimachinery.resources import GroupKind, group_kind_of
from federation.apimachinery.selectors import SelectorError
from federation.planning.placement.replicas import WILDCARD
from federation.planning.waves.waverules import compile_rules
from federation.scheduling.framework.orderedgroups import place_of
from federation.scheduling.policyspec import to_groups

_WARNINGS_MAX = 10
Kinds = AbstractSet[GroupKind]
"""The federated kinds."""


def named_clusters(policy: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the clusters that the policy names, each with the field; "*" names none."""
    spec = policy.get("spec") or {}
    found = [
        (f"spec.placement[{index}].cluster", str(entry.get("cluster") or ""))
        for index, entry in enumerate(spec.get("placement") or ())
    ]
    for index, rule in enumerate(spec.get("overrideRules") or ()):
        target = f"spec.overrideRules[{index}].targetClusters"
        targets = rule.get("targetClusters") or {}
        found += [
            (f"{target}.clusters[{place}]", str(name)) for place, name in enumerate(targets.get("clusters") or ())
        ]
        found += _of_terms(f"{target}.clusterAffinity", targets.get("clusterAffinity") or ())
    for index, wave in enumerate((spec.get("rollout") or {}).get("waves") or ()):
        found += [
            (f"spec.rollout.waves[{index}].clusters[{place}]", str(name))
            for place, name in enumerate(wave.get("clusters") or ())
        ]
    found += _of_terms("spec.clusterAffinity", spec.get("clusterAffinity") or ())
    for index, group in enumerate(spec.get("clusterGroups") or ()):
        at = f"spec.clusterGroups[{index}]"
        found += [(f"{at}.clusters[{place}]", str(name)) for place, name in enumerate(group.get("clusters") or ())]
        found += _of_terms(f"{at}.clusterAffinity", group.get("clusterAffinity") or ())
    return [(field, name) for field, name in found if name not in ("", WILDCARD)]


def _of_terms(at: str, terms: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the clusters that terms select by name; excluded clusters may be gone."""
    for index, term in enumerate(terms):
        for place, expression in enumerate(term.get("matchFields") or ()):
            if expression.get("key") == "metadata.name" and expression.get("operator") == "In":
                for name in expression.get("values") or ():
                    yield f"{at}[{index}].matchFields[{place}]", str(name)


def _is_resolved(field: str) -> bool:
    """Return whether a name in the field that exists only in lower case means that cluster (`Snapshot.resolve`)."""
    return field.endswith(".cluster") or ".targetClusters.clusters[" in field


def _hint(name: str, clusters: Iterable[str]) -> str:
    return f"; did you mean {name.lower()!r}?" if name.lower() in clusters else ""


def reference_warnings(
    policy: Mapping[str, Any],
    clusters: Mapping[str, Mapping[str, str]],
    kinds: Kinds,
    others: Iterable[Mapping[str, Any]] = (),
) -> list[str]:
    """Return the warnings, at most ten and a count of the rest.

    `clusters` are the labels of all FederatedClusters by name, `others` the propagation policies that a propagation
    policy is compared with; it may be among them.
    """
    found = [
        f"{field}: there is no FederatedCluster {name!r}{_hint(name, clusters.keys())}"
        for field, name in named_clusters(policy)
        if name not in clusters and not (_is_resolved(field) and name.lower() in clusters)
    ]
    for index, selector in enumerate((policy.get("spec") or {}).get("resourceSelectors") or ()):
        if group_kind_of(selector) not in kinds:
            title = f"{selector.get('kind')} in {selector.get('apiVersion')}"
            found.append(
                f"spec.resourceSelectors[{index}]: {title} is not federated, so nothing is selected;"
                " no FederatedTypeConfig covers it"
            )
    found += _about_waves(policy.get("spec") or {}, clusters)
    found += _about_competitors(policy, others)
    if len(found) <= _WARNINGS_MAX:
        return found
    return [*found[:_WARNINGS_MAX], f"and {len(found) - _WARNINGS_MAX} more warnings of this kind"]


def _about_waves(spec: Mapping[str, Any], clusters: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the waves that would be empty for every workload, because the policy places none in their clusters."""
    if not spec.get("rollout"):
        return
    placed = _possible_clusters(spec, clusters)
    try:
        rules = compile_rules("", spec["rollout"])
    except (TypeError, ValueError, KeyError):
        return
    if not placed:
        return  # Nothing is placed anywhere, which other warnings are about.
    for index, wave in enumerate(rules.waves[:-1]):
        if wave.gate.is_open and not wave.is_paused:
            continue
        if not any(wave.matches(name, labels) for name, labels in placed.items()):
            then = (
                "takes the first clusters instead" if wave.takes_first else "holds every rollout until it is approved"
            )
            yield f"spec.rollout.waves[{index}]: no cluster of wave {wave.name} can have the workload, so it {then}"


def _possible_clusters(
    spec: Mapping[str, Any], clusters: Mapping[str, Mapping[str, str]]
) -> dict[str, Mapping[str, str]]:
    """Return the clusters that names and labels in a propagation policy admit; an override policy admits all."""
    listed = {entry.get("cluster") for entry in spec.get("placement") or ()}
    wanted = (spec.get("clusterSelector") or {}).items()
    groups = to_groups(spec.get("clusterGroups") or ())
    terms = compile_cluster_terms(spec["clusterAffinity"]) if spec.get("clusterAffinity") else None

    def is_possible(name: str, labels: Mapping[str, str]) -> bool:
        if listed and not listed & {name, WILDCARD}:
            return False
        if any(labels.get(key) != value for key, value in wanted):
            return False
        if groups and place_of(groups, name, labels) is None:
            return False
        try:
            return terms is None or terms.matches(name, labels)
        except SelectorError:
            return False

    return {name: labels for name, labels in clusters.items() if is_possible(name, labels)}


def _competitors(policy: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the policies that may select the same objects, each with the index of the policy's selector."""
    own = _selectors(policy)
    found = []
    for other in sorted(others, key=_precedence):
        if _precedence(other) == _precedence(policy):
            continue
        index = next(
            (place for place, mine in enumerate(own) if any(_may_overlap(mine, its) for its in _selectors(other))), None
        )
        if index is not None:
            found.append((index, other))
    return found


def _about_competitors(policy: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for index, other in _competitors(policy, others):
        kind = _selectors(policy)[index].get("kind")
        first = min(policy, other, key=_precedence)
        wins = "this one" if first is policy else "that one"
        yield (
            f"spec.resourceSelectors[{index}]: {_describe(other)} may select the same objects of kind {kind};"
            f" {wins} applies to them, unless their label names a policy"
        )


def _selectors(policy: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (policy.get("spec") or {}).get("resourceSelectors") or ()


def _precedence(policy: Mapping[str, Any]) -> tuple[bool, str, str]:
    """Return the sort key of policies: policies of a namespace first, each by name."""
    metadata = policy["metadata"]
    namespace = str(metadata.get("namespace") or "")
    return not namespace, str(metadata.get("name") or ""), namespace


def _describe(policy: Mapping[str, Any]) -> str:
    namespace = policy["metadata"].get("namespace")
    kind = "PropagationPolicy" if namespace else "ClusterPropagationPolicy"
    return f'{kind} "{policy["metadata"].get("name")}"'


def _may_overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether both selectors can match an object; False only when they certainly cannot."""
    if group_kind_of(one) != group_kind_of(other):
        return False
    if one.get("name") and other.get("name") and one["name"] != other["name"]:
        return False
    mine, its = ((entry.get("labelSelector") or {}).get("matchLabels") or {} for entry in (one, other))
    return all(mine[key] == its[key] for key in mine.keys() & its.keys())
