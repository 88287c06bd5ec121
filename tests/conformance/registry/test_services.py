"""Services: allocation, preservation and release of addresses and node ports, and refused ones."""

from ipaddress import ip_address, ip_network

import pytest
from tests.conformance.registry.conftest import Api, a_service

from federation.apimachinery.errors import Invalid


async def test_a_service_gets_an_address_of_the_network(api: Api) -> None:
    spec = (await api.create("services", a_service()))["spec"]
    assert ip_address(spec["clusterIP"]) in ip_network("10.96.0.0/12")
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["type"] == "ClusterIP"
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert spec["ipFamilies"] == ["IPv4"]


async def test_the_same_name_gets_the_same_address_again(api: Api) -> None:
    first = await api.create("services", a_service())
    await api.delete("services", "svc")
    second = await api.create("services", a_service())
    assert first["spec"]["clusterIP"] == second["spec"]["clusterIP"]


@pytest.mark.every_store
async def test_no_two_services_share_an_address(api: Api) -> None:
    made = [await api.create("services", a_service(f"s{index}")) for index in range(20)]
    assert len({service["spec"]["clusterIP"] for service in made}) == 20


async def test_a_headless_service_has_none(api: Api) -> None:
    spec = (await api.create("services", a_service(clusterIP="None")))["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


async def test_a_chosen_address_is_taken(api: Api) -> None:
    spec = (await api.create("services", a_service(clusterIP="10.96.0.1")))["spec"]
    assert spec["clusterIP"] == "10.96.0.1"


@pytest.mark.every_store
async def test_a_taken_address_is_refused(api: Api) -> None:
    await api.create("services", a_service("a", clusterIP="10.96.0.1"))
    with pytest.raises(Invalid, match="provided IP is already allocated"):
        await api.create("services", a_service("b", clusterIP="10.96.0.1"))


async def test_an_address_is_free_after_deletion(api: Api) -> None:
    await api.create("services", a_service("a", clusterIP="10.96.0.1"))
    await api.delete("services", "a")
    assert await api.create("services", a_service("b", clusterIP="10.96.0.1"))


@pytest.mark.parametrize("address", ["192.168.0.1", "not-an-ip"])
async def test_an_address_from_elsewhere_is_refused(api: Api, address: str) -> None:
    with pytest.raises(Invalid, match=r"spec\.clusterIPs"):
        await api.create("services", a_service(clusterIP=address))


async def test_an_external_name_has_no_address(api: Api) -> None:
    spec = (
        await api.create("services", {**a_service(), "spec": {"type": "ExternalName", "externalName": "a.example.com"}})
    )["spec"]
    assert "clusterIP" not in spec


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
async def test_node_ports_are_allocated_and_kept(api: Api, kind: str) -> None:
    made = await api.create(
        "services", a_service(type=kind, ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "b"}])
    )
    ports = [port["nodePort"] for port in made["spec"]["ports"]]
    assert len(set(ports)) == 2
    assert all(30000 <= port <= 32767 for port in ports)
    again = await api.update(
        "services", a_service(type=kind, ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "b"}])
    )
    assert again == made


async def test_a_taken_node_port_is_refused(api: Api) -> None:
    await api.create("services", a_service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30080}]))
    with pytest.raises(Invalid, match=r"spec\.ports\[0\]\.nodePort: Invalid value: 30080: provided port is already"):
        await api.create("services", a_service("b", type="NodePort", ports=[{"port": 80, "nodePort": 30080}]))


async def test_a_node_port_out_of_range_is_refused(api: Api) -> None:
    with pytest.raises(Invalid, match="The range of valid ports is 30000-32767"):
        await api.create("services", a_service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]))


async def test_changing_back_to_cluster_ip_releases_the_node_ports(api: Api) -> None:
    made = await api.create("services", a_service(type="NodePort"))
    made["spec"]["type"] = "ClusterIP"
    back = await api.update("services", made)
    assert "nodePort" not in back["spec"]["ports"][0]
    assert back["spec"]["clusterIP"] == made["spec"]["clusterIP"]


async def test_an_update_without_address_keeps_it(api: Api) -> None:
    made = await api.create("services", a_service())
    changed = await api.update("services", a_service(ports=[{"port": 8080}]))
    assert changed["spec"]["clusterIP"] == made["spec"]["clusterIP"]


async def test_a_failed_create_releases_its_address(api: Api) -> None:
    await api.create("services", a_service("a"))
    with pytest.raises(Exception, match="already exists"):
        await api.create("services", a_service("a", clusterIP="10.96.0.1"))
    assert await api.create("services", a_service("b", clusterIP="10.96.0.1"))


async def test_a_dry_run_allocates_no_address(api: Api) -> None:
    await api.create("services", a_service("a", clusterIP="10.96.0.1"), dry_run=True)
    assert await api.create("services", a_service("b", clusterIP="10.96.0.1"))


async def test_managed_fields_name_what_was_written_and_not_what_was_allocated(api: Api) -> None:
    chosen = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}, {"port": 443, "name": "tls"}]}
    chosen["ports"][0]["name"] = "http"
    made = await api.create("services", a_service(**chosen))
    (entry,) = made["metadata"]["managedFields"]
    spec = entry["fieldsV1"]["f:spec"]
    assert "f:clusterIP" not in spec
    assert "f:nodePort" in spec["f:ports"]['k:{"port":80,"protocol":"TCP"}']
    assert "f:nodePort" not in spec["f:ports"]['k:{"port":443,"protocol":"TCP"}']
    assert made["spec"]["ports"][1]["nodePort"]
