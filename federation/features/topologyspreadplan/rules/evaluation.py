"""Planner and checker over an observation, for the controller and for `fedctl topology`. Pure.

Both are generators that yield between slices of work (`planner.py`).
"""

from collections.abc import Mapping, Sequence

from federation.features.topologyspreadplan.rules.check import Violation, check, live_states
from federation.features.topologyspreadplan.rules.observation import Observation, held_zones, outdated_pods
from federation.features.topologyspreadplan.rules.planner import Plan, Slices, plan_service, search_from

_LIVE_STATES_MAX = 5_000
"""States of a search from the live pods; a larger one says nothing."""


def plan_observed(observation: Observation) -> Slices[Plan]:
    """Plan the observed service."""
    return (yield from plan_service(observation.service, held=held_zones(observation)))


def check_observed(
    observation: Observation, plan: Plan, problems: Mapping[str, str] | None = None
) -> Slices[Sequence[Violation]]:
    """Check the observed pods; `problems` has a message for each StatefulSet whose constraints were refused."""
    searches = []
    for state in live_states(plan, observation.distribution):
        result = yield from search_from(state, plan.skews, _LIVE_STATES_MAX)
        searches.append(result)
    outdated = outdated_pods(observation)
    outdated |= {name: f"the plan is not applied to {name}: {problem}" for name, problem in (problems or {}).items()}
    return check(plan, observation.distribution, outdated=outdated, searches=searches)
