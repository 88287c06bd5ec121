"""Vectors `mcs`: the Service of a ServiceImport, and that nothing is written when it is there already."""

from typing import Any

from tests.support.vectors import each_case, filled, load, with_operations

from federation.features.services.rules.imports import derived_service, plan_service, service_ports

CASES = load("mcs")


@each_case(with_operations(CASES, "derivedService"))
def test_the_service_of_an_import(case: dict[str, Any]) -> None:
    given = filled(case["input"], serviceImport={"metadata": {"namespace": "", "name": ""}})
    assert derived_service(given["serviceImport"]) == filled(case["expected"], service={})["service"]


@each_case(with_operations(CASES, "servicePorts"))
def test_the_ports_of_an_import(case: dict[str, Any]) -> None:
    given = filled(case["input"], ports=[], serviceImport={})
    ports = given["ports"] or (given["serviceImport"].get("spec") or {}).get("ports")
    assert service_ports({"ports": ports}) == filled(case["expected"], ports=[])["ports"]


@each_case(with_operations(CASES, "updateDerivedServiceFedObject"))
def test_a_service_that_is_placed_already_is_not_written(case: dict[str, Any]) -> None:
    # The vector gives no objects: it says that the existing one equals the desired one.
    service_import = {"metadata": {"namespace": "foo", "name": "bar"}, "spec": {"ports": [{"port": 80}]}}
    federated: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "spec": {}}
    patch = plan_service(federated, service_import, ["east"])
    assert patch is not None
    federated["spec"] = patch["spec"]
    assert (plan_service(federated, service_import, ["east"]) is not None) == filled(case["expected"], updated=False)[
        "updated"
    ]
