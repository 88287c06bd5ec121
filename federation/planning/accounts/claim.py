"""The claim of a workload on the quotas of its namespace: what it may run in each cluster. Pure.

The scheduler writes the claim into an annotation of the federated object, in the same patch as a placement, and only as
far as the quotas allow it. The delivery writes nothing that would use more. So a new template, an override or a higher
request waits until there is room for it, and what was delivered before stays.

What an object gives up counts (`pays`) until members have reported that they have the smaller content, or that the
object is gone: an amount comes back when what used it is gone. An object that moves pays once.

Decision: docs/decisions/0264-what-is-written-by-hand-starts-with-nothing.md
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from federation.apimachinery.annotationrecords import AnnotationRecord, Count
from federation.planning.accounts.names import QUOTA_CLAIM
from federation.planning.federatedobject.finished import evidence_by_cluster

PODS = "pods"
_WITHHELD = "QuotaExceeded"
_AS_WANTED = frozenset(("OK", "Kept", "Finished"))


class Use(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an object may run in one cluster."""

    replicas: Count
    request: dict[str, Count] = {}
    """Of one replica."""
    pods: Count = 1
    """Of one replica."""

    def amounts(self) -> dict[str, int]:
        """Return the amounts by resource, pods included."""
        return {name: self.replicas * amount for name, amount in {**self.request, PODS: self.pods}.items()}

    def with_pods_of(self, other: "Use | None") -> "Use":
        """Return it with the larger of both requests, if pods of the other one stay."""
        if other is None or not other.replicas:
            return self
        request = {**other.request, **self.request}
        most = {name: max(amount, other.request.get(name, 0)) for name, amount in request.items()}
        return msgspec.structs.replace(self, request=most)

    def is_within(self, other: "Use | None") -> bool:
        """Return whether it uses no more of any resource than another one."""
        most = other.amounts() if other is not None else {}
        return all(amount <= most.get(name, 0) for name, amount in self.amounts().items())


Uses = Mapping[str, Use]
"""By cluster."""


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """The annotation of a workload in a namespace with a quota."""

    may: dict[str, Use]
    """What may be delivered to each cluster."""
    pays: dict[str, Count] = {}
    """Amounts by measure that count beside `may` until members have reported generation `at`."""
    at: Count = 0


CLAIM = AnnotationRecord(QUOTA_CLAIM, Claim)
NOTHING_YET = Claim({})
"""The claim of an object that the quotas have granted nothing."""


def claim_of(federated: Mapping[str, Any]) -> Claim | None:
    """Return the claim of an object as it counts now, None without one: less what has ended or been given up."""
    claim = CLAIM.of(federated)
    if claim is None:
        return None
    ended = evidence_by_cluster(federated)
    may = {name: msgspec.structs.replace(use, replicas=0) if name in ended else use for name, use in claim.may.items()}
    is_open = bool(claim.pays) and not has_reported(federated, claim.at, claim.may.keys())
    return Claim(may, claim.pays if is_open else {}, claim.at if is_open else 0)


def plan_claim(
    before: Claim,
    wanted: Uses,
    generation: int,
    paid: Callable[[Claim], Mapping[str, int]],
    find_excess: Callable[[Claim], str],
) -> tuple[Claim, str]:
    """Return the next claim of an object, and the quota that keeps it from what it wants, "" for none.

    `generation` is that of the object with its next patch. `paid` values a claim by measure.
    """
    after = Claim(dict(wanted))
    if excess := find_excess(after):
        held = {
            name: use if use.is_within(before.may.get(name)) else before.may.get(name) for name, use in wanted.items()
        }
        after = Claim({name: use for name, use in held.items() if use is not None})
    amounts = paid(after)
    more = {name: amount for name, amount in paid(before).items() if amount > amounts.get(name, 0)}
    return Claim(after.may, more, generation if more else 0), excess


def find_unpaid(federated: Mapping[str, Any], cluster: str, wanted: Use | None) -> str:
    """Return what content for a cluster would use beyond the object's claim, "" for nothing or without a claim."""
    if wanted is None or (claim := CLAIM.of(federated)) is None:
        return ""
    granted = claim.may.get(cluster)
    most = granted.amounts() if granted is not None else {}
    return ", ".join(sorted(name for name, amount in wanted.amounts().items() if amount > most.get(name, 0)))


def has_reported(federated: Mapping[str, Any], generation: int, clusters: AbstractSet[str]) -> bool:
    """Return whether these clusters have the content of a generation, or something newer, and no other has any.

    Pods of earlier content that a rolling update has not replaced yet are such content.
    """
    status = federated.get("status") or {}
    if int(status.get("syncedGeneration") or 0) < generation:
        return False
    # Where content is withheld and nothing was there before, nothing is there.
    entries = {
        str(entry.get("cluster")): entry.get("status")
        for entry in status.get("clusters") or ()
        if entry.get("status") != _WITHHELD or entry.get("lastObservedGeneration")
    }
    has_earlier_pods = any(entry.get("earlierPods") for entry in status.get("clusters") or ())
    return entries.keys() <= clusters and _AS_WANTED.issuperset(entries.values()) and not has_earlier_pods
