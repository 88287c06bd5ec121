"""Hand the state of copies that leave their clusters to the ones that begin elsewhere, whatever the cause is. Pure.

A lost cluster hands over what its copy reported last. Decision: docs/decisions/0280-state-leaves-with-every-copy.md
"""

from collections.abc import Sequence
from dataclasses import replace

from federation.api import names
from federation.features.applicationfailover.names import EVENT_NO_STATE
from federation.planning.failover.application import State, StateRule, handed_states
from federation.planning.failover.handover import describe_missing, handed_entry, state_of
from federation.scheduling.chain import Permit
from federation.scheduling.proposal import Proposal
from federation.scheduling.worldobjects import Copies


class StateHandedOver(Permit):
    """The values that the policy's `failover.statePreservation` names, of each copy that leaves."""

    name = "state"

    def permit(self, proposal: Proposal) -> Proposal:
        """Record what the new copies get, and name what is not known."""
        rules, copies = proposal.due.policy.failover.state, proposal.world.copies
        before, after = proposal.attempt.current(), proposal.decision.placements
        if not rules or copies is None or not after.keys() - before.keys() or not before.keys() - after.keys():
            return proposal
        left, missing = _left(proposal, rules, copies)
        handed = {names.HANDED_STATE: handed_entry(proposal.attempt.federated, before, after, left)}
        warnings = {EVENT_NO_STATE: "; ".join(missing)} if missing else {}
        return replace(proposal.recording(handed), warnings={**proposal.warnings, **warnings})


def _left(proposal: Proposal, rules: tuple[StateRule, ...], copies: Copies) -> tuple[Sequence[State], Sequence[str]]:
    """Return the states of the copies that leave, and what is not known of them."""
    federated, resource = proposal.attempt.federated, proposal.attempt.federated_type.resource
    namespace = federated["metadata"].get("namespace", "") if resource.namespaced else ""
    name, known = federated["spec"]["template"]["metadata"]["name"], handed_states(federated)
    left: list[State] = []
    missing = []
    for cluster in sorted(proposal.attempt.current().keys() - proposal.decision.placements.keys()):
        copy = copies.get_cached(cluster, resource, namespace, name)
        if copy is None or not copy.get("status"):  # it never ran, so the state that it got is the newest one
            found = known.get(cluster)
            if found is None:
                missing.append(f"what it reported in {cluster} is not known, and is not handed over")
        else:
            found, paths = state_of(rules, cluster, copy)
            missing += [describe_missing(cluster, paths)] if paths else []
        left += [found] if found is not None else []
    return left, missing
