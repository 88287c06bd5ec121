"""The host's admission of rendered objects: which kinds it concerns, what an answer means, what a user reads. Pure.

A user may override in a member what the host would refuse. Therefore the host judges an overridden object, as the
creation of that object in a dry run, before it leaves: as a user without rights, and as each author of the overrides.
`Renderer.subject` builds the object to judge;
`delivery/host/hostadmission.py` asks and remembers the verdicts.

Reference: docs/reference/admission.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from federation.api import names
from federation.apimachinery.amounts import first_of
from federation.apimachinery.errors import AlreadyExists, ApiError, FederationError
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Resource, UserInfo
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.planning.authors import AUTHORS_MAX, authors_of, override_authors
from federation.planning.federatedobject.provenance import is_hand_written
from federation.planning.overrides.policies import PolicyReference, stored_policies
from federation.planning.rendering.names import REASON_ADMISSION_FAILED, REASON_ADMISSION_REFUSED, REASON_ADMITTED

_MESSAGE_LENGTH_MAX = 1024
_CLUSTERS_SHOWN_MAX = 10
_GROUPS_SHOWN_MAX = 5
_PATHS_SHOWN_MAX = 5
_ANY = "*"


class Outcome(StrEnum):
    """The host's answer about one object."""

    ADMITTED = "Admitted"
    REFUSED = "Refused"
    UNANSWERED = "Unanswered"
    """The host, or a webhook that it must ask, did not answer: the object is held, and the host is asked again."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer, and the host's message about an object that is held."""

    outcome: Outcome
    message: str = ""


ADMITTED = Verdict(Outcome.ADMITTED)


def to_verdict(error: FederationError | None, resource: Resource, name: str) -> Verdict:
    """Return what the answer to the dry run of a creation means; None is an answer without an error.

    An API server looks for an object of the same name last, after validation and admission, so its answer that the
    name is taken, word for word, is an admission. A webhook's denial has another message.
    """
    if error is None:
        return ADMITTED
    message = str(error)
    if isinstance(error, AlreadyExists) and message == f'{resource.group_resource} "{name}" already exists':
        return ADMITTED
    is_answer = isinstance(error, ApiError) and not error.retryable
    return Verdict(Outcome.REFUSED if is_answer else Outcome.UNANSWERED, message[:_MESSAGE_LENGTH_MAX])


def to_mutation_verdict(paths: Sequence[str]) -> Verdict:
    """Return the verdict when mutating admission takes these overrides back; ADMITTED for none.

    What the host changes is not applied to member objects: it was applied to the source. But what it does not let a
    user set on the host, no override may set in a member.
    """
    if not paths:
        return ADMITTED
    shown = ", ".join(paths[:_PATHS_SHOWN_MAX]) + (" and others" if len(paths) > _PATHS_SHOWN_MAX else "")
    message = f"the host's mutating admission takes the override back of {shown}"
    return Verdict(Outcome.REFUSED, message[:_MESSAGE_LENGTH_MAX])


# -- which kinds admission concerns


@dataclass(frozen=True, slots=True)
class Concerns:
    """The resources whose creation some admission configuration matches: pairs of group and plural, "*" for any."""

    pairs: frozenset[tuple[str, str]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __or__(self, other: "Concerns") -> "Concerns":
        """Return the resources of both."""
        return Concerns(self.pairs | other.pairs)

    def include(self, resource: Resource) -> bool:
        """Return whether the host may refuse an object of the resource. Selectors and conditions are the host's."""
        groups, plurals = (resource.group, _ANY), (resource.plural, _ANY)
        return any((group, plural) in self.pairs for group in groups for plural in plurals)


_RESIZED = frozenset((SERVICES, PERSISTENT_VOLUME_CLAIMS, PODS))
"""Kinds whose use of a quota, or place within a LimitRange, an override can change; that of others is their number."""


def is_limited(federated: Mapping[str, Any], resource: Resource) -> bool:
    """Return whether quotas and LimitRanges of the namespace may refuse what users overrode or wrote by hand."""
    return resource in _RESIZED or is_hand_written(federated)


def compile_concerns(
    webhooks: Iterable[Mapping[str, Any]],
    policies: Iterable[Mapping[str, Any]],
    bindings: Iterable[Mapping[str, Any]],
) -> Concerns:
    """Return the concerns of webhook configurations, and of the policies of one kind that have a binding.

    Versions are ignored, because a rule for one version also matches objects in others. Our own webhooks are ignored:
    they refuse no creation of a federated kind, and there is one for each of them.
    """
    pairs: set[tuple[str, str]] = set()
    for configuration in webhooks:
        if (configuration.get("metadata") or {}).get("name") == names.HOST_WEBHOOKS:
            continue
        for webhook in configuration.get("webhooks") or ():
            pairs |= _pairs(webhook.get("rules"))
    bound = {(binding.get("spec") or {}).get("policyName") for binding in bindings}
    for policy in policies:
        if policy["metadata"]["name"] in bound:
            constraints = (policy.get("spec") or {}).get("matchConstraints") or {}
            # Without rules a policy matches everything.
            pairs |= _pairs(constraints.get("resourceRules") or [{"operations": [_ANY]}])
    return Concerns(frozenset(pairs))


def _pairs(rules: Sequence[Mapping[str, Any]] | None) -> set[tuple[str, str]]:
    return {
        (group, _ANY if plural == "*/*" else plural)
        for rule in rules or ()
        if not {"CREATE", _ANY}.isdisjoint(rule.get("operations") or ())
        for group in rule.get("apiGroups") or (_ANY,)
        for plural in rule.get("resources") or (_ANY,)
        if plural == "*/*" or "/" not in plural
    }


# -- who asks, and what a user reads


def requesters_of(federated: Mapping[str, Any]) -> list[UserInfo]:
    """Return the users that admission sees one after the other; all must be admitted.

    The first stands for the control plane and has no rights: overrides that come from ClusterOverridePolicies alone,
    which administrators write, have a user of their own; an override of unknown origin is a tenant's. The others are
    the recorded authors of the override policies, of a source that names one in a label, and of an object that was
    written by hand.
    """
    policies = stored_policies(federated)
    is_cluster_wide = bool(policies) and not any(policy.namespace for policy in policies)
    is_of_administrators = is_cluster_wide and not is_hand_written(federated)
    name = names.CLUSTER_OVERRIDE_POLICY_USER if is_of_administrators else names.OVERRIDE_POLICY_USER
    users: list[UserInfo] = [{"username": name, "groups": [AUTHENTICATED]}]
    for author in [*override_authors(federated), *authors_of(federated)]:
        if author not in users:
            users.append(author)
    return users


def limit_verdict(users: Sequence[UserInfo]) -> Verdict | None:
    """Return the verdict for more users than the host is asked about, None for as many as that or less."""
    if len(users) <= AUTHORS_MAX + 1:
        return None
    text = (
        f"{len(users) - 1} users wrote what is overridden, more than {AUTHORS_MAX}; write the policies as fewer users"
    )
    return Verdict(Outcome.REFUSED, text)


def combine(verdicts: Sequence[Verdict | None]) -> Verdict | None:
    """Return the verdict of all users together: the first refusal, None if one of the answers is missing."""
    held = [verdict for verdict in verdicts if verdict is not None and verdict.outcome is not Outcome.ADMITTED]
    refused = [verdict for verdict in held if verdict.outcome is Outcome.REFUSED]
    if refused:
        return refused[0]
    if None in verdicts:
        return None
    return held[0] if held else ADMITTED


@dataclass(frozen=True, slots=True)
class Report:
    """The condition Admitted."""

    status: str
    reason: str
    message: str = ""


def plan_report(held: Mapping[str, Verdict], policies: Sequence[PolicyReference]) -> Report:
    """Return the condition for the clusters that an object is held from, by cluster; {} when it is held from none."""
    if not held:
        return Report("True", REASON_ADMITTED)
    groups: dict[Verdict, list[str]] = {}
    for cluster in sorted(held):
        groups.setdefault(held[cluster], []).append(cluster)
    shown = [
        f"{first_of(clusters, _CLUSTERS_SHOWN_MAX)}: {verdict.message}"
        for verdict, clusters in islice(groups.items(), _GROUPS_SHOWN_MAX)
    ]
    if len(groups) > len(shown):
        shown.append(f"and {len(groups) - len(shown)} more messages")
    origin = f" (overridden by {', '.join(policy.display for policy in policies)})" if policies else ""
    is_refused = any(verdict.outcome is Outcome.REFUSED for verdict in groups)
    reason = REASON_ADMISSION_REFUSED if is_refused else REASON_ADMISSION_FAILED
    return Report("False", reason, "; ".join(shown) + origin)
