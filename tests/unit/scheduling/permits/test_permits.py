"""The permits of a decision: what each one says, and which of two is said."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.scheduling.test_attempt import MINE, TYPE, a_federated, a_policy

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object
from federation.features.catalogue import decision_chain
from federation.planning.failover.evictingclusters import EvictingClusters, NothingListed
from federation.planning.failover.evictionrecord import StayReason
from federation.planning.failover.failoveroptions import FailoverOptions
from federation.planning.failover.pace import PaceOptions
from federation.planning.guard.ledger import GuardOptions
from federation.planning.guard.moves import Moves
from federation.scheduling.answers import Due, Leave, Wait
from federation.scheduling.assessment import assess
from federation.scheduling.attempt import start_attempt
from federation.scheduling.chain import ORDER, Permit, permit, to_chain
from federation.scheduling.engine import Engine
from federation.scheduling.evictions import Evictions
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW
from federation.scheduling.jobqueues import ADMISSION, Admission, Phase
from federation.scheduling.names import REASON_AWAITS_DEFINITION, REASON_FROZEN
from federation.scheduling.occasions import Occasion
from federation.scheduling.permits.spinepermits import PERMITS
from federation.scheduling.policyspec import compile_policy
from federation.scheduling.proposal import Proposal
from federation.scheduling.world import World
from federation.scheduling.worldobjects import ListedObjects

ENGINE = Engine(load_plugins())
ALWAYS = [{"start": "2020-01-01T00:00:00Z", "end": "2099-01-01T00:00:00Z"}]
DRAIN = {"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": to_rfc3339(NOW - timedelta(hours=1))}
DEDICATED = {"key": "dedicated", "effect": "NoExecute", "timeAdded": to_rfc3339(NOW - timedelta(hours=1))}
TOLERATION = {"key": "dedicated", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
NOWHERE = [{"key": "no", "operator": "Exists"}]
CHAIN = decision_chain()


def a_cluster(name: str, *, serves: bool = True, taints: Iterable[Any] = ()) -> Object:
    kinds = [
        {"group": "apps", "version": "v1", "kind": "Deployment", "pluralName": "deployments", "scope": "Namespaced"}
    ]
    return {
        "metadata": {"name": name},
        "spec": {"taints": list(taints)},
        "status": {
            "apiResourceTypes": kinds if serves else [],
            "conditions": [
                {"type": "Joined", "status": "True"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"},
            ],
        },
    }


@dataclass
class Setting:
    """A Deployment in cluster east whose decision moves it to west, and what stops that.

    `taint` is why it leaves east; by default one that it tolerated for a minute.
    """

    reasons: tuple[str, ...] = ()
    taint: dict[str, str] = field(default_factory=lambda: dict(DEDICATED))
    spec: dict[str, Any] = field(default_factory=dict)
    template: dict[str, Any] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=lambda: {"east": 4})
    world: World = field(init=False)

    def __post_init__(self) -> None:
        self.world = world = World(CHAIN.reads)
        clusters = [a_cluster("east", taints=[self.taint]), a_cluster("west", serves="definition" not in self.reasons)]
        limits = FailoverOptions(pace=PaceOptions(replicas_per_minute=0 if "failover" in self.reasons else 600))
        evicting = EvictingClusters(ListedClusters(clusters), NothingListed(), limits.halts)
        for cluster in clusters:
            world.clusters.update(cluster)
            evicting.on_cluster(None, cluster)
        world.evictions = Evictions(evicting, limits)
        if "freeze" in self.reasons:
            world.freezes.put({"metadata": {"name": "sale"}, "spec": {"reason": "the sale", "windows": ALWAYS}})
        if "guard" in self.reasons:
            world.moves = Moves(GuardOptions(share=0, count=0))
        if "definition" in self.reasons:
            world.federated_objects = ListedObjects([_DEFINITION])
        world.policies.put(compile_policy(a_policy(tolerations=[TOLERATION], **self.spec)))

    def federated(self) -> dict[str, Any]:
        annotations = {}
        if "queue-place" in self.reasons:
            admission = Admission(Phase.ADMITTED, "jobs", NOW, clusters=["east"])
            annotations[ADMISSION.name] = ADMISSION.text(admission)
        federated = a_federated(pending=MINE, **annotations)
        federated["spec"]["template"]["spec"] |= self.template
        placement = [{"cluster": name} for name in self.placed]
        federated["spec"]["placements"] = [{"controller": names.GLOBAL_SCHEDULER, "placement": placement}]
        return federated

    def propose(self) -> Proposal:
        attempt = start_attempt(self.federated(), TYPE, self.world.policies)
        assert attempt is not None
        attempt.know(dict(self.placed))
        snapshot = self.world.clusters.snapshot()
        due = assess(attempt, self.world, CHAIN, snapshot, Occasion(NOW, is_unschedulable=True))
        assert isinstance(due, Due)
        decision = ENGINE.decide(due.unit, snapshot, due.profile, now=NOW)
        return Proposal(attempt, due, decision, snapshot, self.world, NOW)

    def answer(self) -> tuple[Proposal, Wait | Leave | None]:
        return permit(CHAIN.permits, self.propose())


class ListedClusters:
    """The FederatedClusters of a setting."""

    def __init__(self, clusters: list[Object]) -> None:
        self._clusters = clusters

    def get(self, namespace: str, name: str) -> Object | None:
        return next((each for each in self._clusters if each["metadata"]["name"] == name), None)

    def list(self) -> list[Object]:
        return self._clusters


_DEFINITION: Object = {
    "metadata": {"name": "x", "creationTimestamp": to_rfc3339(NOW)},
    "spec": {
        "template": {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "deployments.apps"},
            "spec": {"group": "apps", "names": {"kind": "Deployment"}},
        },
        "placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "west"}]}],
    },
}


SAID = {
    "definition": REASON_AWAITS_DEFINITION,
    "freeze": REASON_FROZEN,
    "guard": names.REASON_HELD,
    "queue-place": "Leave",
}
"""What the permits that stop a decision say."""


def _said(setting: Setting) -> str:
    _, answer = setting.answer()
    return answer.reason if isinstance(answer, Wait) else type(answer).__name__


def test_what_nothing_stops_is_written_as_it_was_decided() -> None:
    proposal, answer = Setting().answer()
    assert answer is None
    assert proposal.decision.placements == {"west": 4}
    assert not proposal.is_partial


@pytest.mark.parametrize("reason", SAID)
def test_each_permit_says_its_reason(reason: str) -> None:
    assert _said(Setting((reason,), placed={} if reason == "definition" else {"east": 4})) == SAID[reason]


@pytest.mark.parametrize("pair", list(itertools.combinations(("freeze", "guard", "queue-place"), 2)), ids=str)
def test_of_two_reasons_the_one_that_comes_first_in_the_table_is_said(pair: tuple[str, str]) -> None:
    assert _said(Setting(pair)) == SAID[min(pair, key=ORDER.index)]


@pytest.mark.parametrize("other", ["freeze", "guard", "queue-place"])
def test_an_object_without_a_place_waits_for_its_definition_alone(other: str) -> None:
    assert _said(Setting(("definition", other), placed={})) == REASON_AWAITS_DEFINITION
    assert _said(Setting((other,), placed={})) == "NoneType", "nothing moves"


@pytest.mark.parametrize("other", ["freeze", "guard"])
def test_what_failover_keeps_does_not_move_so_nothing_else_holds_it(other: str) -> None:
    proposal, answer = Setting(("failover", other), DRAIN).answer()
    assert answer is None
    assert proposal.decision.placements == {"east": 4}
    assert [stay.reason for stay in proposal.stays.values()] == [StayReason.RATE]
    assert proposal.is_partial


def test_an_eviction_that_failover_grants_is_frozen_and_is_no_mistake_to_the_guard() -> None:
    assert _said(Setting(("freeze",), DRAIN)) == REASON_FROZEN
    proposal, answer = Setting(("guard",), DRAIN).answer()
    assert answer is None
    assert proposal.decision.placements == {"west": 4}


def test_a_freeze_takes_back_what_was_granted_to_the_move() -> None:
    setting = Setting(("freeze",), DRAIN)
    setting.answer()
    assert setting.world.evictions.pace.confirm(("default", "web-deployments.apps"), NOW.timestamp()) == 0
    assert setting.world.freezes.waiting == {("default", "web-deployments.apps")}
    setting.world.freezes.remove("sale")
    assert setting.answer()[1] is None
    assert not setting.world.freezes.waiting


VOLUME = {"template": {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}}
CLAIM = {
    "metadata": {"name": "data-persistentvolumeclaims", "namespace": "default"},
    "spec": {
        "template": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"]},
        }
    },
}


def a_setting_with_volumes(*reasons: str, taint: dict[str, str]) -> Setting:
    setting = Setting(reasons, taint, template=VOLUME)
    setting.world.federated_objects = ListedObjects([CLAIM])
    return setting


def test_volumes_keep_what_a_drain_takes_away_and_the_guard_holds_the_rest() -> None:
    proposal, answer = a_setting_with_volumes("guard", taint=DRAIN).answer()
    assert answer is None
    assert proposal.decision.placements == {"east": 4}
    assert [stay.reason for stay in proposal.stays.values()] == [StayReason.STATE]
    proposal, answer = a_setting_with_volumes(taint=DEDICATED).answer()
    assert isinstance(answer, Wait)
    assert answer.reason == names.REASON_HELD
    assert answer.placements == {"east": 4}
    assert answer.message.startswith("PersistentVolumeClaim data do not move with it")


def test_a_freeze_is_said_before_a_hold_for_volumes() -> None:
    assert _said(a_setting_with_volumes("freeze", taint=DEDICATED)) == REASON_FROZEN


class TeamRests(Permit):
    """An example of a permit that only its feature knows."""

    name = "team-rests"

    def permit(self, proposal: Proposal) -> Wait:
        return Wait("TeamRests", "team a rests", placements=proposal.attempt.current())


def test_a_permit_that_the_table_does_not_list_has_the_last_word() -> None:
    chain = to_chain([TeamRests(), *PERMITS])
    assert chain.permits[-1].name == "team-rests"
    _, answer = permit(chain.permits, Setting(("guard",)).propose())
    assert isinstance(answer, Wait)
    assert answer.reason == names.REASON_HELD
    _, answer = permit(chain.permits, Setting().propose())
    assert answer == Wait("TeamRests", "team a rests", placements={"east": 4})


class Takes(Permit):
    """An example of a permit that takes from accounts."""

    name = "takes"

    def permit(self, proposal: Proposal) -> Proposal:
        return proposal

    def claim(self, proposal: Proposal) -> Proposal:
        return proposal.recording({"taken": "1"})


def test_a_claim_is_taken_when_all_permits_have_let_the_decision_go_on() -> None:
    proposal, answer = permit(to_chain([Takes(), *PERMITS]).permits, Setting().propose())
    assert answer is None
    assert proposal.annotations["taken"] == "1"
    proposal, answer = permit(to_chain([Takes(), TeamRests(), *PERMITS]).permits, Setting().propose())
    assert answer is not None
    assert "taken" not in proposal.annotations


def test_permits_are_not_asked_of_a_decision_that_found_no_place() -> None:
    setting = Setting(("freeze", "guard"), spec={"clusterAffinity": [{"matchExpressions": NOWHERE}]})
    proposal, answer = setting.answer()
    assert not proposal.decision.is_success
    assert answer is None
    assert _said(Setting(("queue-place",), spec=setting.spec)) == "Leave", "it cannot stay either"
