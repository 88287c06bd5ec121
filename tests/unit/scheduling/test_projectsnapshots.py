"""Decisions see the clusters of the object's project only."""

from dataclasses import replace
from typing import Any

from tests.unit.planning.projects.test_projectindex import a_project
from tests.unit.scheduling.test_attempt import NOW, TYPE, Inputs, a_federated, a_policy

from federation.planning.federatedobject.placements import with_placement
from federation.scheduling.answers import Due
from federation.scheduling.assessment import assess
from federation.scheduling.attempt import start_attempt
from federation.scheduling.engine import Decision, Engine
from federation.scheduling.framework.moving import AVOIDED
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.occasions import Occasion
from federation.scheduling.projectsnapshots import ProjectSnapshots
from federation.scheduling.snapshot import Snapshot, changes

ENGINE = Engine(load_plugins())


def scoped(inputs: Inputs, *projects: dict[str, Any]) -> ProjectSnapshots:
    snapshots = ProjectSnapshots(inputs.clusters)
    for project in projects:
        snapshots.projects.put(project)
    return snapshots


def placed_in(*clusters: str, **annotations: str) -> dict[str, Any]:
    federated = a_federated(**annotations)
    part = with_placement(federated, "kubeadmiral.io/global-scheduler", clusters, records_departed=False)
    return {**federated, "spec": {**federated["spec"], **part["spec"]}} if "spec" in part else federated


def decided(inputs: Inputs, federated: dict[str, Any], snapshot: Snapshot) -> tuple[Due, Decision]:
    attempt = start_attempt(federated, TYPE, inputs.policies)
    assert attempt is not None
    due = assess(attempt, inputs, inputs.chain, snapshot, Occasion(NOW))
    assert isinstance(due, Due)
    # These clusters have no nodes. Without filters, only what no profile may switch off rejects them.
    return due, ENGINE.decide(due.unit, snapshot, replace(due.profile, filter=()), now=NOW)


def test_a_cluster_outside_the_project_is_in_no_part_of_a_decision() -> None:
    inputs = Inputs(a_policy(placement=[{"cluster": "west"}, {"cluster": "east"}], schedulingMode="Duplicate"))
    snapshots = scoped(inputs, a_project("shop", "default", names=["east"]))
    federated = a_federated()
    due, decision = decided(inputs, federated, snapshots.of(federated))
    assert list(decision.placements) == ["east"]
    assert decision.filtered is not None
    assert "west" not in str((decision.filtered.rejected, due.triggers, decision.reason))
    assert snapshots.labels("default").keys() == {"east"}
    assert snapshots.labels("elsewhere").keys() == {"east", "west"}


def test_an_object_leaves_a_cluster_that_its_project_loses_whatever_its_policy_says() -> None:
    inputs = Inputs(
        a_policy(schedulingMode="Duplicate", stickyCluster=True, reschedulePolicy={"disableRescheduling": True})
    )
    snapshots = scoped(inputs, a_project("shop", "default", names=["east"]))
    federated = placed_in("east", "west")
    snapshot = snapshots.of(federated)
    assert snapshot.left == {"west": "project shop does not have cluster west any more"}
    due, decision = decided(inputs, federated, snapshot)
    assert list(decision.placements) == ["east"]
    assert AVOIDED.of(due.unit) == snapshot.left
    assert decision.filtered is not None
    assert decision.filtered.rejected["west"].plugin == "Project"
    assert '"clustersLeft":["west"]' in due.triggers


def test_snapshots_are_made_once_per_change_and_compared_within_their_project() -> None:
    inputs = Inputs(a_policy())
    snapshots = scoped(inputs, a_project("shop", "default", names=["east"]))
    federated = a_federated()
    first = snapshots.of(federated)
    assert snapshots.of(federated) is first
    assert snapshots.newest(first) is first
    assert list(changes(first, snapshots.newest(first))) == []
    inputs.clusters.update({"metadata": {"name": "west", "labels": {"new": "label"}}, "status": {"conditions": []}})
    assert snapshots.of(federated) is not first
    assert list(changes(first, snapshots.newest(first))) == [], "a change outside the project is none"
    snapshots.projects.remove("shop")
    assert snapshots.of(federated) is inputs.clusters.snapshot()


def test_a_cluster_that_a_project_gets_is_a_change_for_its_objects() -> None:
    inputs = Inputs(a_policy())
    snapshots = scoped(inputs, a_project("shop", "default", names=["east"]))
    federated = a_federated()
    before = inputs.triggers._clusters.state(snapshots.of(federated))
    snapshots.projects.put(a_project("shop", "default", names=["east", "west"]))
    after = inputs.triggers._clusters.state(snapshots.of(federated))
    assert (list(before.hashes), list(after.hashes)) == (["east"], ["east", "west"])
