"""Which suspension holds an object in a cluster, and until when."""

from datetime import datetime
from typing import Any

import pytest

from federation.apimachinery.resources import Object
from federation.planning.freezes.suspension import Suspension, compile_suspension, find_suspended

NOW = datetime.fromisoformat("2026-07-03T12:00:00+00:00")
WEB: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}}}


def a_suspension(name: str = "s", namespace: str = "shop", **spec: Any) -> Suspension:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return compile_suspension({"metadata": metadata, "spec": {"owner": "ops", "reason": "a copy", **spec}})


def held(*suspensions: Suspension, namespace: str = "shop", obj: Object = WEB, **labels: str) -> str:
    found = find_suspended(suspensions, obj, namespace, "east", labels, NOW)
    return "" if found is None else found.message


def test_the_message_has_reason_owner_and_end() -> None:
    assert held(a_suspension()) == "DeliverySuspension shop/s holds until it is deleted: a copy (owner: ops)"
    until = a_suspension(namespace="", until="2026-07-03T14:00:00+02:00"), a_suspension(until="2026-07-03T13:00:00Z")
    assert held(until[0]) == "", "its end is now"
    assert held(*until) == "DeliverySuspension shop/s holds until 2026-07-03T13:00:00Z: a copy (owner: ops)"


@pytest.mark.parametrize(
    ("suspension", "is_held"),
    [
        (a_suspension(namespace="other"), False),
        (a_suspension(clusters=["east"]), True),
        (a_suspension(clusters=["west"]), False),
        (a_suspension(clusterSelector={"matchLabels": {"tier": "prod"}}), True),
        (a_suspension(clusterSelector={"matchLabels": {"tier": "test"}}), False),
        (a_suspension(clusters=["east"], clusterSelector={"matchLabels": {"tier": "test"}}), False),
        (a_suspension(objects=[{"apiVersion": "apps/v1", "kind": "Deployment"}]), True),
        (a_suspension(objects=[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}]), False),
        (a_suspension(objects=[{"apiVersion": "apps/v1beta1", "kind": "Deployment"}]), True),
        (a_suspension(objects=[{"apiVersion": "v1", "kind": "Secret"}]), False),
        (
            a_suspension(
                objects=[
                    {"apiVersion": "v1", "kind": "Secret"},
                    {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}},
                ]
            ),
            True,
        ),
        (a_suspension(namespace=""), True),
        (a_suspension(namespace="", namespaces=["shop"]), True),
        (a_suspension(namespace="", namespaces=["other"]), False),
        (a_suspension(until="soon", clusters=["west"]), True),
        (a_suspension(namespace="other", until="soon"), False),
        (a_suspension(objects=[{"kind": "Deployment"}]), True),
    ],
)
def test_it_holds_what_it_is_about_and_everything_there_when_it_cannot_be_read(
    suspension: Suspension, is_held: bool
) -> None:
    assert bool(held(suspension, tier="prod")) is is_held
    if "malformed" in suspension.message and is_held:
        assert held(suspension, tier="prod").startswith("DeliverySuspension shop/s is malformed: ")


def test_the_longest_is_named_whatever_their_order() -> None:
    short, long = a_suspension("a", until="2026-07-04T00:00:00Z"), a_suspension("b", until="2026-07-05T00:00:00Z")
    endless = a_suspension("c")
    for order in ([short, long, endless], [endless, long, short]):
        assert "shop/c " in held(*order)
    for pair in ([short, long], [long, short]):
        assert "shop/b " in held(*pair)


def test_a_namespace_is_held_with_its_objects() -> None:
    shop: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert held(a_suspension(namespace="", namespaces=["shop"]), namespace="", obj=shop)
    assert not held(a_suspension(namespace="", namespaces=["other"]), namespace="", obj=shop)


def test_a_removal_waits_for_suspensions_of_administrators_only() -> None:
    def held_removal(*suspensions: Suspension) -> str:
        found = find_suspended(suspensions, WEB, "shop", "east", {}, NOW, only_cluster_wide=True)
        return "" if found is None else found.message

    assert held_removal(a_suspension(), a_suspension(until="soon")) == ""
    assert held_removal(a_suspension(until="soon"), a_suspension("own", "")).startswith("ClusterDeliverySuspension own")
