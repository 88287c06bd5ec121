"""Copies of exported EndpointSlices, and the conditions of a ServiceExport."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.apimachinery import conditions
from federation.features.services.rules.exports import (
    Export,
    conflict_of,
    export_of,
    imported_name,
    is_copy_current,
    plan_conditions,
    source_label,
    source_of,
    to_imported,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DNS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=260)


def a_slice(name: str = "web-1", service: str = "web", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": {"kubernetes.io/service-name": service, names.MANAGED_LABEL: "true", **labels},
        },
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": ["10.0.0.1"],
                "conditions": {"ready": True},
                "nodeName": "node-1",
                "targetRef": {"kind": "Pod", "name": "web-x"},
                "zone": "a",
            }
        ],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


def a_service(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}], **spec},
    }


def an_export(cluster: str, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Export:
    found = export_of(cluster, {"metadata": {"creationTimestamp": created}}, a_service(**spec), [a_slice()])
    assert found is not None
    return found


def test_a_copy_knows_neither_nodes_nor_pods_of_its_cluster() -> None:
    copy = to_imported("east", a_slice(**{"service.kubernetes.io/headless": ""}))
    assert copy["metadata"]["name"] == "imported-east-web-1"
    assert copy["metadata"]["labels"] == {
        "kubernetes.io/service-name": "web",
        "kubeadmiral.io/source-cluster": "east",
        "endpointslice.kubernetes.io/managed-by": "serviceexport-controller.kubeadmiral.io",
        "service.kubernetes.io/headless": "",
    }
    assert copy["endpoints"] == [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "zone": "a"}]
    assert copy["ports"] == a_slice()["ports"]
    assert source_of(copy) == ("web", "east")


def test_a_copy_is_current_with_labels_of_others() -> None:
    copy = to_imported("east", a_slice())
    labels = {**copy["metadata"]["labels"], "team": "shop"}
    present = {**copy, "metadata": {**copy["metadata"], "labels": labels}}
    assert is_copy_current(present, copy)
    assert not is_copy_current({**present, "endpoints": []}, copy)


def test_an_imported_slice_is_not_exported_again() -> None:
    own, imported = a_slice(), to_imported("west", a_slice("web-2"))
    found = export_of("east", {"metadata": {}}, a_service(), [own, imported, a_slice("db-1", "db")])
    assert found is not None
    assert list(found.slices) == [own]


def test_a_service_without_a_selector_or_of_another_cluster_is_not_exported() -> None:
    export = {"metadata": {}}
    assert export_of("east", None, a_service(), []) is None
    assert export_of("east", export, None, []) is None
    assert export_of("east", export, a_service(selector=None), []) is None
    assert export_of("east", export, a_service(type="ExternalName"), []) is None
    leaving = a_service()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert export_of("east", export, leaving, []) is None


@given(DNS, DNS)
def test_names_and_labels_are_short_enough(cluster: str, name: str) -> None:
    assert len(imported_name(cluster, name)) <= 253
    assert len(source_label(cluster)) <= 63


@given(st.permutations(["a", "b", "c", "d"]), st.sampled_from(["a", "b", "c", "d"]))
def test_the_oldest_export_wins_in_any_order(order: list[str], odd: str) -> None:
    exports = [an_export(name, f"2026-01-0{1 + 'abcd'.index(name)}T00:00:00Z") for name in order]
    exports = [
        an_export(each.cluster, each.created, clusterIP="None") if each.cluster == odd else each for each in exports
    ]
    text = conflict_of(exports)
    assert text.startswith("not as in a, whose export is the oldest: ")
    assert (f"type of {odd}" in text) == (odd != "a")


def test_conditions_say_who_exports_and_what_differs() -> None:
    alike = [an_export("east"), an_export("west")]
    planned = plan_conditions(None, alike, {}, has_service=True, now=NOW)
    assert [each["type"] for each in planned] == ["Valid"]
    assert plan_conditions(planned, alike, {}, has_service=True, now=NOW) is planned
    other = an_export("west", ports=[{"name": "http", "port": 81}])
    planned = plan_conditions(planned, [alike[0], other], {}, has_service=True, now=NOW)
    conflict = conditions.find(planned, "Conflict")
    assert conflict is not None
    assert conflict["message"] == "not as in east, whose export is the oldest: ports of west"
    planned = plan_conditions(planned, alike, {"west": "no"}, has_service=True, now=NOW)
    valid = conditions.find(planned, "Valid")
    assert valid is not None
    assert (valid["reason"], valid["message"]) == ("EndpointsRefused", "the host refuses EndpointSlices of west: no")
    planned = plan_conditions(planned, [], {}, has_service=False, now=NOW)
    assert [(each["type"], each["status"], each["reason"]) for each in planned] == [("Valid", "False", "NoService")]
