"""Addresses and node ports of Services: what users wrote travels, what the host allocated does not."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.planning.federatedobject import builder, changes
from federation.planning.federatedobject.allocations import without_unwritten, written_allocations
from federation.planning.rendering.memberobject import Renderer
from federation.planning.rendering.retention import retain_for_apply
from federation.runtime.transforms import drop_managed_fields

TYPE = next(t for t in map(from_config, default_type_configs()) if t.name == "services")
HTTP, HTTPS = ({"port": port, "protocol": "TCP"} for port in (80, 443))


def entry(*spec_fields: str, ports: tuple[dict[str, Any], ...] = (), **more: str) -> dict[str, Any]:
    """Return a managed fields entry of a user who wrote these fields of the spec, and these ports' nodePort."""
    fields: dict[str, Any] = {f"f:{name}": {} for name in ("selector", *spec_fields)}
    keys = ["k:" + orjson.dumps(port).decode() for port in ports]
    fields["f:ports"] = {key: {".": {}, "f:port": {}, "f:nodePort": {}} for key in keys}
    return {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": fields}, **more}


def a_service(*managed: dict[str, Any], **spec: Any) -> dict[str, Any]:
    allocated = {
        "type": "LoadBalancer",
        "clusterIP": "10.96.0.7",
        "clusterIPs": ["10.96.0.7"],
        "healthCheckNodePort": 32000,
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{**HTTP, "nodePort": 30080}, {**HTTPS, "nodePort": 30443}],
    }
    metadata = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7", "managedFields": [*managed]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {**allocated, **spec}}


def rendered(source: dict[str, Any]) -> Any:
    return Renderer(builder.build(source, TYPE), TYPE).render("east").object["spec"]


def test_what_the_host_allocated_does_not_travel() -> None:
    assert rendered(a_service(entry())) == {"type": "LoadBalancer", "ports": [HTTP, HTTPS]}


def test_a_source_without_managed_fields_has_no_written_allocations() -> None:
    source = a_service()
    del source["metadata"]["managedFields"]
    assert rendered(source) == {"type": "LoadBalancer", "ports": [HTTP, HTTPS]}


def test_what_a_user_wrote_travels_and_nothing_else() -> None:
    spec = rendered(a_service(entry("healthCheckNodePort", ports=(HTTPS,))))
    assert spec == {
        "type": "LoadBalancer",
        "healthCheckNodePort": 32000,
        "ports": [HTTP, {**HTTPS, "nodePort": 30443}],
    }
    assert rendered(a_service(entry("clusterIP")))["clusterIP"] == "10.96.0.7"
    dual = a_service(entry("ipFamilyPolicy"), ipFamilyPolicy="PreferDualStack")
    assert rendered(dual) == {"type": "LoadBalancer", "ports": [HTTP, HTTPS], "ipFamilyPolicy": "PreferDualStack"}
    assert rendered(a_service(entry("ipFamilies")))["ipFamilies"] == ["IPv4"]


def test_a_headless_service_stays_headless() -> None:
    source = a_service(entry(), clusterIP="None", clusterIPs=["None"], type="ClusterIP")
    assert rendered(source)["clusterIP"] == "None"


def test_a_status_writer_does_not_make_an_address_a_users() -> None:
    assert written_allocations(a_service(entry("clusterIP", subresource="status"))) == frozenset()


@pytest.mark.parametrize(
    "managed",
    [
        [None],
        [{"fieldsV1": None}],
        [{"fieldsV1": {"f:spec": {"f:ports": {'k:{"port"': {"f:nodePort": {}}, "k:[]": {"f:nodePort": {}}}}}}],
    ],
    ids=["no entry", "no fields", "broken keys"],
)
def test_managed_fields_of_another_form_count_as_none(managed: Any) -> None:
    source = a_service()
    source["metadata"]["managedFields"] = managed
    assert written_allocations(source) == frozenset()


def test_a_user_cannot_set_the_mark() -> None:
    source = a_service(entry())
    source["metadata"]["annotations"] = {names.WRITTEN_ALLOCATIONS: "spec.clusterIP"}
    federated = builder.build(source, TYPE)
    assert names.WRITTEN_ALLOCATIONS not in federated["metadata"]["annotations"]
    assert federated["spec"]["template"]["metadata"]["annotations"] == {}


def test_a_service_of_another_group_keeps_its_fields() -> None:
    source = {**a_service(), "apiVersion": "serving.knative.dev/v1"}
    assert builder.build(source, TYPE)["spec"]["template"]["spec"] == source["spec"]


def test_caches_keep_what_tells_users_and_the_server_apart() -> None:
    source = a_service(entry("clusterIP", ports=(HTTP,)), entry(), entry("clusterIP", subresource="status"))
    written = written_allocations(source)
    cached = drop_managed_fields(orjson.loads(orjson.dumps(source)))
    assert written == {"spec.clusterIP", "spec.ports[80/TCP].nodePort"}
    assert written_allocations(cached) == written
    assert len(cached["metadata"]["managedFields"]) == 1
    assert builder.build(cached, TYPE)["spec"] == builder.build(source, TYPE)["spec"]


def test_taking_over_an_allocated_value_is_a_change() -> None:
    allocated, written = a_service(entry()), a_service(entry(ports=(HTTP,)))
    assert changes.is_relevant_change(allocated, written)
    assert changes.is_relevant_change(written, allocated)
    assert not changes.is_relevant_change(written, a_service(entry(ports=(HTTP,)), entry()))
    federated = builder.build(allocated, TYPE)
    federated["metadata"]["resourceVersion"] = "9"
    patch = builder.plan_update(written, federated, TYPE)
    assert patch is not None
    assert patch["metadata"]["annotations"][names.WRITTEN_ALLOCATIONS] == "spec.ports[80/TCP].nodePort"
    assert patch["spec"]["template"]["spec"]["ports"][0] == {**HTTP, "nodePort": 30080}


def test_dropping_a_written_value_removes_the_mark() -> None:
    federated = builder.build(a_service(entry("clusterIP")), TYPE)
    federated["metadata"]["resourceVersion"] = "9"
    patch = builder.plan_update(a_service(entry()), federated, TYPE)
    assert patch is not None
    assert patch["metadata"]["annotations"][names.WRITTEN_ALLOCATIONS] is None
    assert patch["spec"]["template"]["spec"] == {"clusterIP": None, "clusterIPs": None}


def test_a_written_node_port_replaces_the_members() -> None:
    desired = {"kind": "Service", "spec": {"ports": [{**HTTP, "nodePort": 30080}]}}
    live = {"spec": {"clusterIP": "10.1.2.3", "ports": [{**HTTP, "nodePort": 31111}]}}
    assert retain_for_apply(desired, live, has_written_ports=True) == desired
    assert retain_for_apply(desired, live)["spec"]["ports"] == [{**HTTP, "nodePort": 31111}]


def test_the_host_judges_an_overridden_service_without_the_address_that_its_source_holds() -> None:
    federated = builder.build(a_service(entry("clusterIP", ports=(HTTP,))), TYPE)
    patches = [{"path": "/spec/sessionAffinity", "value": "ClientIP", "op": "add"}]
    federated["spec"]["overrides"] = [
        {"controller": names.OVERRIDE_CONTROLLER, "clusters": [{"cluster": "east", "patches": patches}]}
    ]
    subject = Renderer(federated, TYPE).subject("east")
    assert subject is not None
    assert subject.object["spec"] == {"type": "LoadBalancer", "ports": [HTTP, HTTPS], "sessionAffinity": "ClientIP"}


def test_a_spec_without_allocations_is_unchanged() -> None:
    spec = {"ports": [HTTP, "odd"], "type": "ClusterIP"}
    assert without_unwritten(spec, frozenset()) == spec
