"""Requests to a Service whose pods run in several real clusters, as a client behind a global load balancer sends them.

`Backends` answers for each running pod at an address of this machine; `Traffic` sends requests to the ready endpoints of
all clusters, and records each one that got no answer.
"""

import random
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import httpx
from tests.kubernetes.cluster import Cluster
from tests.support.rest import Api

_RATE = 20.0
_LOOK_S = 0.25
"""How often the load balancer reads endpoints: it is as late as that."""
_START_S = 2.0
"""How long a request waits for an endpoint, and a connection for the process of a pod that has just become ready."""


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


class _Pods:
    """The pods of one namespace of one cluster: a server for each that runs, and the ready addresses of a Service."""

    def __init__(self, cluster: Cluster, namespace: str, service: str) -> None:
        self._api = cluster.api()
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self._query = {"labelSelector": f"kubernetes.io/service-name={service}"}
        self._servers: dict[str, ThreadingHTTPServer] = {}
        self.ports: dict[str, int] = {}
        self.gone: set[str] = set()

    def look(self) -> list[str]:
        """Start and stop servers as pods come and go, and return the ready addresses of the Service."""
        running = {
            pod["status"]["podIP"]
            for pod in _items(self._api, self._pods)
            if (pod.get("status") or {}).get("phase") == "Running"
        }
        for address in running - self._servers.keys():
            server = self._servers[address] = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.ports[address] = server.server_address[1]
        for address in self._servers.keys() - running:
            self.gone.add(address)
            del self.ports[address]
            _stop(self._servers.pop(address))
        return [
            address
            for each in _items(self._api, self._slices, self._query)
            for endpoint in each.get("endpoints") or ()
            if (endpoint.get("conditions") or {}).get("ready")
            for address in endpoint["addresses"]
        ]

    def close(self) -> None:
        for server in self._servers.values():
            _stop(server)
        self._api.close()


class Traffic:
    """20 requests per second to a Service during the block; `failed` says when and why a request got no answer."""

    def __init__(self, clusters: Mapping[str, Cluster], namespace: str, service: str) -> None:
        self._clusters = {name: _Pods(cluster, namespace, service) for name, cluster in clusters.items()}
        self._ready: dict[str, list[str]] = {}
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._watch, args=(name,), daemon=True) for name in clusters]
        self._threads.append(threading.Thread(target=self._send, daemon=True))
        self._draw = random.Random(1)
        self.failed: list[str] = []
        self.answered: dict[str, int] = dict.fromkeys(clusters, 0)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(30)
        for pods in self._clusters.values():
            pods.close()

    def _watch(self, name: str) -> None:
        while not self._stopped.wait(_LOOK_S):
            try:
                self._ready[name] = self._clusters[name].look()
            except httpx.HTTPError as error:  # the load balancer keeps what it knew
                self.failed.append(f"endpoints of {name} cannot be read: {error!r}")

    def _send(self) -> None:
        with httpx.Client(timeout=5) as client:
            while not any(self._ready.values()):
                if self._stopped.wait(_LOOK_S):
                    return
            began, sent = time.monotonic(), 0
            while not self._stopped.is_set():
                sent += 1
                self._request(client)
                self._stopped.wait(max(0.0, began + sent / _RATE - time.monotonic()))

    def _request(self, client: httpx.Client) -> None:
        at, until_s = time.strftime("%H:%M:%S"), time.monotonic() + _START_S
        while not (targets := [(name, address) for name, ready in self._ready.items() for address in ready]):
            if time.monotonic() > until_s:
                self.failed.append(f"{at}: no endpoint is ready")
                return
            self._stopped.wait(0.01)
        name, address = self._draw.choice(targets)
        pods = self._clusters[name]
        while (port := pods.ports.get(address)) is None and address not in pods.gone and time.monotonic() < until_s:
            self._stopped.wait(0.01)
        try:
            client.get(f"http://127.0.0.1:{port or 1}/", headers={"Connection": "close"}).raise_for_status()
            self.answered[name] += 1
        except httpx.HTTPError as error:
            self.failed.append(f"{at}: {address} in {name}: {error!r}")


def _items(api: Api, path: str, query: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    answer = api.http.get(path, params=dict(query or {}))
    if answer.status_code == 404:
        return []
    answer.raise_for_status()
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def _stop(server: ThreadingHTTPServer) -> None:
    server.shutdown()
    server.server_close()
