"""Volumes that an object without a place finds in the clusters: those of an earlier object of its name. Pure.

A StatefulSet names the claims of its templates TEMPLATE-NAME-ORDINAL and uses them again when it is created again;
other pods name their claims. So a claim of that name in a cluster says where the data of a new object is, whatever
happened to the earlier one: a deletion, a FederatedTypeConfig that went, a restore of the host. A decision treats such
clusters as if the object ran there, and `volumepermit.py` asks before it starts with empty volumes elsewhere.

`controllers/schedule/claimwatch.py` collects the facts.
Decision: docs/decisions/0222-volumes-say-where-a-new-object-goes.md
"""

import re
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from federation.api import names
from federation.apimachinery import dotpaths
from federation.apimachinery.amounts import to_count
from federation.apimachinery.resources import Object
from federation.planning.division.ordinals import STARTS, STATEFUL_SETS, parse_record, start_of_range
from federation.planning.failover.tolerance import AccessModes, fixed_claims_of

_ORDINAL = re.compile(r"-(0|[1-9][0-9]{0,9})\Z")


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """The names of the claims that an object's pods use and that do not move."""

    stems: tuple[str, ...] = ()
    """TEMPLATE-NAME of each claim template of a StatefulSet; the ordinals follow."""
    plain: tuple[str, ...] = ()
    """Claims that the pods name themselves."""


@dataclass(frozen=True, slots=True)
class ClusterClaims:
    """The claims of these names that one cluster has: ordinals of templates, and whether there is a plain one."""

    ordinals: AbstractSet[int] = frozenset()
    has_plain: bool = False


@dataclass(frozen=True, slots=True)
class EarlierVolumes:
    """Where volumes of the object's name are: cluster → ordinals, None for volumes that any number of replicas uses."""

    counts: dict[str, int | None] = field(default_factory=dict)
    starts: str = ""
    """The record of the ordinals' starts that lets the pods find their volumes, "" if it does not matter."""
    clashing: AbstractSet[str] = frozenset()
    """Clusters whose volumes a share may not find: their ordinals are not known, or another cluster has the same."""
    unknown: AbstractSet[str] = frozenset()
    """Clusters that do not answer and of which nothing is known."""
    is_awaited: bool = False
    """Whether a cluster that answers has not listed its claims yet."""

    @property
    def matter(self) -> bool:
        """Whether a decision has to look at them."""
        return bool(self.counts or self.unknown or self.is_awaited)


NO_VOLUMES = EarlierVolumes()


def claim_names_of(template: Mapping[str, Any], access_modes: AccessModes) -> ClaimNames:
    """Return the names of the claims that the object's pods use; those of kinds with random names are not known."""
    group, _, _ = str(template.get("apiVersion") or "").rpartition("/")
    stems = claim_stems_of(template) if (group, template.get("kind")) in STATEFUL_SETS else ()
    return ClaimNames(stems, tuple(fixed_claims_of(template, access_modes)))


def claim_stems_of(stateful_set: Mapping[str, Any]) -> tuple[str, ...]:
    """Return TEMPLATE-NAME of each claim template; the ordinals follow."""
    claims = dotpaths.get(stateful_set, ("spec", "volumeClaimTemplates")) or ()
    found = (dotpaths.get(claim, ("metadata", "name")) for claim in claims)
    return tuple(f"{name}-{stateful_set['metadata']['name']}" for name in found if name)


def stems_of(claim: Object) -> tuple[str, ...]:
    """Return namespace and name of a member's claim without its ordinal, as the values of an index."""
    metadata = claim["metadata"]
    stem = stem_of(metadata["name"])
    return (f"{metadata['namespace']}/{stem}",) if stem else ()


def stem_of(name: str) -> str:
    """Return a claim's name without its ordinal, "" if it has none."""
    stem = _ORDINAL.sub("", name)
    return "" if stem == name else stem


def has_data(claim: Mapping[str, Any]) -> bool:
    """Return whether a member's claim has a volume, and is not being deleted."""
    return bool((claim.get("spec") or {}).get("volumeName")) and not claim["metadata"].get("deletionTimestamp")


def ordinals_of(claims: Iterable[Object]) -> frozenset[int]:
    """Return the ordinals of claims that have data."""
    found = (_ORDINAL.search(claim["metadata"]["name"]) for claim in claims if has_data(claim))
    return frozenset(int(matched[1]) for matched in found if matched)


def find_volumes(
    federated: Mapping[str, Any],
    claims: Mapping[str, ClusterClaims],
    *,
    recorded: Collection[str] = (),
    unknown: AbstractSet[str] = frozenset(),
    is_awaited: bool = False,
) -> EarlierVolumes:
    """Return where the volumes are; `recorded` are clusters that cannot list claims, and had the object before.

    A single one has the volumes that the others lack. How several of them share these is not known, so that replicas in
    one of them may lack those of another.
    """
    counts: dict[str, int | None] = {}
    for cluster, found in claims.items():
        if found.ordinals:
            counts[cluster] = len(found.ordinals)
        elif found.has_plain:
            counts[cluster] = None
    rest = _rest(federated, claims) if len(recorded) == 1 else None
    counts |= dict.fromkeys(recorded, rest)
    starts, clashing = _starts(federated, claims)
    if len(recorded) > 1 and claim_stems_of(federated["spec"]["template"]):
        clashing |= frozenset(recorded)
    return EarlierVolumes(
        counts=dict(sorted(counts.items())),
        starts=STARTS.text(starts) if starts else "",
        clashing=clashing,
        unknown=unknown - counts.keys(),
        is_awaited=is_awaited,
    )


def note_of(volumes: EarlierVolumes, chosen: AbstractSet[str], visible: AbstractSet[str]) -> str:
    """Return what a decision for the clusters `chosen` says of the volumes; `visible` are its project's clusters."""
    unknown = sorted(volumes.unknown & visible)
    begins = "it begins where volumes of its name are" if volumes.counts.keys() & chosen else ""
    lacks = f"whether clusters [{','.join(unknown)}] have volumes of its name is not known" if unknown else ""
    return "; ".join(filter(None, (begins, lacks)))


def describe_start(unused: AbstractSet[str], visible: AbstractSet[str], chosen: Iterable[str], command: str) -> str:
    """Return why an object waits that would start elsewhere than its volumes; other clusters are not named."""
    inside = sorted(unused & visible)
    where = [f"in clusters [{','.join(inside)}]"] if inside else []
    if count := len(unused) - len(inside):
        where.append(f"in {to_count(count, 'cluster')} that its project does not have, or that left the federation")
    return (
        f"volumes of an earlier object of its name are {' and '.join(where)}, and in [{','.join(sorted(chosen))}] it"
        " would start with empty ones. To use them, let it be placed where they are; to do without them, delete their"
        f" claims there, or: {command}"
    )


def _rest(federated: Mapping[str, Any], claims: Mapping[str, ClusterClaims]) -> int | None:
    """Return how many replicas find their volumes elsewhere than in these claims, None if claims are not counted."""
    known = sum(len(found.ordinals) for found in claims.values())
    replicas = dotpaths.get(federated["spec"]["template"], ("spec", "replicas"))
    return max(0, replicas - known) if known and isinstance(replicas, int) else None


def _starts(federated: Mapping[str, Any], claims: Mapping[str, ClusterClaims]) -> tuple[dict[str, int], frozenset[str]]:
    """Return the start of each cluster's ordinals, by its claims and then by the record, and who has a taken one."""
    base = dotpaths.get(federated["spec"]["template"], ("spec", "ordinals", "start")) or 0
    starts: dict[str, int] = {}
    clashing: set[str] = set()
    for cluster in sorted(claims, key=lambda name: (-len(claims[name].ordinals), name)):
        if ordinals := claims[cluster].ordinals:
            start = start_of_range(min(ordinals) - base)
            if start in starts.values():
                clashing.add(cluster)
            else:
                starts[cluster] = start
    if starts:
        recorded = parse_record((federated["metadata"].get("annotations") or {}).get(names.ORDINAL_STARTS))
        taken = set(starts.values())
        starts |= {name: at for name, at in recorded.items() if name not in claims and at not in taken}
    return starts, frozenset(clashing)
