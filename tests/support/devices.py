"""ResourceSlices, DeviceClasses and claims for tests, in the words of resource.k8s.io/v1."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.admission.deviceselectors import selects
from federation.planning.clusters.clusterresources import Collector
from federation.planning.clusters.deviceclaims import TEMPLATE, Claims, requests_in
from federation.scheduling.framework.types import Cluster
from federation.scheduling.snapshot import to_cluster

DRIVER = "gpu.example.com"
CLASS = {"metadata": {"name": DRIVER}, "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}}
LARGE = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"

Fields = dict[str, Any]


def a_device(name: str, model: str = "a100", memory: str = "80Gi", **more: Any) -> Fields:
    """Return a device with an attribute that no other has."""
    attributes = {"model": {"string": model}, "uuid": {"string": f"uuid-{name}"}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}, **more}


def a_slice(
    node: str, devices: Sequence[Fields], *, generation: int = 1, count: int = 1, driver: str = DRIVER, **more: Any
) -> Fields:
    """Return the slice of a node's pool."""
    pool = {"name": node, "generation": generation, "resourceSliceCount": count}
    spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": list(devices), **more}
    return {"metadata": {"name": f"{node}-{driver}"}, "spec": spec}


def a_claim_template(name: str, *requests: Fields) -> Fields:
    """Return a ResourceClaimTemplate."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def exactly(count: int = 1, *selectors: str, name: str = "gpu", device_class: str = DRIVER, mode: str = "") -> Fields:
    """Return a request for a number of devices; `mode` is an allocation mode."""
    found: Fields = {
        "deviceClassName": device_class,
        "selectors": [{"cel": {"expression": text}} for text in selectors],
    }
    return {"name": name, "exactly": {**found, **({"allocationMode": mode} if mode else {"count": count})}}


def claims(**requests: Sequence[Fields]) -> Claims:
    """Return the record of claim templates by name."""
    return Claims(
        {f"{TEMPLATE}/{name}": requests_in(a_claim_template(name, *found)) for name, found in requests.items()}
    )


def a_collector(slices: Mapping[str, Sequence[Fields]], **more: Any) -> Collector:
    """Return a member with a node of 64 cores for each name, and the devices of each."""
    collector = Collector(selects=selects)
    collector.devices.set_class(DRIVER, CLASS)
    for node, devices in slices.items():
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        collector.set_node(node, {"metadata": {"name": node, "labels": {}}, "status": {"allocatable": amounts}})
        collector.devices.set_slice(node, a_slice(node, devices, **more))
    return collector


def allocate(collector: Collector, name: str, *devices: tuple[str, str]) -> None:
    """Allocate (node, device) pairs to a claim."""
    results = [{"driver": DRIVER, "pool": node, "device": device, "request": "gpu"} for node, device in devices]
    source = {"status": {"allocation": {"devices": {"results": results}}}}
    collector.devices.set_claim(("default", name), source)


def as_cluster(name: str, collector: Collector) -> Cluster:
    """Return what the scheduler sees of the member's report."""
    status = {
        "conditions": [{"type": "Joined", "status": "True"}, {"type": "Ready", "status": "True"}],
        "apiResourceTypes": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
        "resources": collector.resources().to_status(),
    }
    return to_cluster({"metadata": {"name": name}, "status": status})
