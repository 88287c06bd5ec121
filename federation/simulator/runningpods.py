"""Pods that run in a light member from its start, for measurements with more pods than anybody waits for.

They are written into the member's new store as a running pod would be, instead of being created, scheduled and started
one by one: a hundred thousand take seconds. No workload owns them. Each is about as large as the pod of an ordinary
service in production: two containers, their environment and probes.
"""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from federation.apimachinery.resources import PODS, Object
from federation.apiserver.store.interface import Entry
from federation.client.client import Client
from federation.simulator.controllers import podstatus
from federation.simulator.controllers.kubelet import address_of
from federation.simulator.options import NodeShape

NAME = "running"
"""The prefix of the pods' names."""
REQUEST = {"cpu": "100m", "memory": "128Mi"}
"""The requests of each pod."""


async def create_model(client: Client) -> Object:
    """Create a pod in the namespace `default`, so that the API server completes it, and return it."""
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    containers: list[dict[str, Any]] = [
        {
            "name": name,
            "image": f"registry.example.com/team/{name}:v1.2.3",
            "env": [{"name": f"SETTING_{number}", "value": f"value of setting {number}"} for number in range(20)],
            "ports": [{"containerPort": 8080}],
            "livenessProbe": probe,
            "readinessProbe": probe,
        }
        for name in ("server", "proxy")
    ]
    containers[0]["resources"] = {"requests": REQUEST}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": "default", "labels": {"app": NAME}},
        "spec": {"nodeName": "node", "containers": containers},
    }
    return await client.create(PODS, pod)


def copies(model: Object, nodes: Sequence[NodeShape], count: int, revision: int) -> Iterator[Entry]:
    """Return the entries of so many pods like the model, on the nodes by turns, with the next revisions."""
    for number in range(revision + 1, revision + 1 + count):
        name = f"{NAME}-{number - revision}"
        own = {"name": name, "uid": str(uuid.uuid4()), "resourceVersion": str(number)}
        pod = {
            **model,
            "metadata": {**model["metadata"], **own},
            "spec": {**model["spec"], "nodeName": nodes[number % len(nodes)].name},
        }
        started = model["metadata"]["creationTimestamp"]
        status = podstatus.compute_running_status(pod, address_of(number - revision), started)
        pod["status"] = {**model["status"], **status}
        yield Entry(f"/core/pods/default/{name}", number, number, orjson.dumps(pod))
