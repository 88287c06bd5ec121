"""The gates of the spine: reasons not to decide that every object can have. Pure.

Those of features are in their folders. `chain.ORDER` has the order of all of them.
"""

from dataclasses import replace

from federation.api import names
from federation.planning.federatedobject.finished import has_finished_everywhere
from federation.scheduling.answers import Deferred, Skipped, Wait
from federation.scheduling.chain import Gate
from federation.scheduling.names import (
    REASON_CLAIMS_NOT_KNOWN,
    REASON_POLICY_NOT_FOUND,
    REASON_PROFILE_NOT_FOUND,
    REASON_SUSPENDED,
)
from federation.scheduling.podrequest import claims_problem
from federation.scheduling.question import Question
from federation.scheduling.triggers import may_concern_finished


class NoScheduling(Gate):
    """An object that its user keeps from the scheduler."""

    name = "no-scheduling"

    def ask(self, question: Question) -> Skipped | None:
        """Skip the object while it has the annotation, unless an administrator sends it away."""
        if not question.annotations.get(names.NO_SCHEDULING):
            return None
        if question.attempt.policy is not None and question.is_sent_away:
            return None
        return Skipped(f"it has the annotation {names.NO_SCHEDULING}")


class HasPolicy(Gate):
    """An object without a policy. One that was never placed is skipped."""

    name = "policy"

    def ask(self, question: Question) -> Wait | Skipped | None:
        """Let an object with a policy go on."""
        attempt = question.attempt
        if attempt.policy is not None:
            return None
        if attempt.ref is not None:
            return Wait(REASON_POLICY_NOT_FOUND, f"{attempt.ref} does not exist")
        if attempt.current():
            return Wait(names.REASON_NO_POLICY, "no policy applies to it any more")
        return Skipped("no policy applies to it")


class HasProfile(Gate):
    """A policy whose profile does not exist."""

    name = "profile"

    def ask(self, question: Question) -> Wait | None:
        """Let an object go on if the profile of its policy exists."""
        if question.found_profile is not None:
            return None
        policy, ref = question.policy, question.attempt.ref
        return Wait(REASON_PROFILE_NOT_FOUND, f"SchedulingProfile {policy.profile} of {ref} does not exist")


class Finished(Gate):
    """An object that has finished in all of its clusters, and would run again elsewhere."""

    name = "finished"

    def ask(self, question: Question) -> Deferred | None:
        """Keep it where it is, unless a user asks for something else."""
        comparison = question.comparison
        if not has_finished_everywhere(question.attempt.federated) or may_concern_finished(comparison.changed):
            return None
        reasons = "finished" if comparison.is_due or comparison.deferred_reasons else ""
        return Deferred(replace(comparison, is_due=False, deferred_reasons=reasons))


class ClaimsAreKnown(Gate):
    """A pod whose device claims are not known yet, so neither are the clusters where it fits."""

    name = "claims"

    def ask(self, question: Question) -> Wait | None:
        """Wait for the claims."""
        problem = claims_problem(question.federated, question.type_)
        return Wait(REASON_CLAIMS_NOT_KNOWN, problem) if problem else None


class NotSuspended(Gate):
    """A policy that suspends scheduling. It is reported where a decision would be due.

    A policy of a namespace is its users' word, and holds nothing that an administrator sends away.
    """

    name = "suspension"

    def ask(self, question: Question) -> Wait | Deferred | None:
        """Keep the placement while the policy suspends scheduling."""
        suspended, comparison = question.policy.suspended, question.comparison
        if not suspended or (question.policy.ref.namespace and question.is_sent_away):
            return None
        is_due = comparison.is_due or not question.attempt.current()
        return Wait(REASON_SUSPENDED, suspended) if is_due else Deferred(comparison)


class Unchanged(Gate):
    """An object that has a placement, and about which nothing changed that counts."""

    name = "unchanged"

    def ask(self, question: Question) -> Deferred | None:
        """Keep the placement unless something calls for a decision."""
        return None if question.is_called or any(question.quiet) else Deferred(question.comparison)


class VolumesAreListed(Gate):
    """An object with volumes and without a place, while clusters list the claims of earlier objects of its name."""

    name = "volumes-listed"

    def ask(self, question: Question) -> Wait | None:
        """Wait a moment for the lists."""
        return Wait("", "clusters list their claims", _LISTED_S) if question.attempt.volumes.is_awaited else None


_LISTED_S = 1.0
GATES = (
    NoScheduling(),
    HasPolicy(),
    HasProfile(),
    Finished(),
    ClaimsAreKnown(),
    NotSuspended(),
    Unchanged(),
    VolumesAreListed(),
)
