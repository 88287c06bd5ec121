"""A scheduler plugin as a web service: divide replicas by the carbon intensity of each cluster's electricity.

Start it (it needs only Python):

    python plugins/examples/carbon_replicas.py --port 8902

Clusters have the label `grid`; a table has the grams of CO2 per kWh of each grid. `--intensity FILE` names a JSON file
{"grid": grams, …} that is reloaded when it changes. A cluster gets replicas in inverse proportion to its grams, within
the limits of policy and nodes. With `--certificate` and `--key` it serves https: `urlPrefix` then starts with https,
and `tlsConfig: {caData: …}` has the authority's certificate, PEM in base64.

    apiVersion: core.kubeadmiral.io/v1alpha1
    kind: SchedulerPluginWebhookConfiguration
    metadata: {name: carbon}
    spec:
      payloadVersions: [v1beta1]
      urlPrefix: http://127.0.0.1:8902
      replicasPath: /replicas
      fields: {unit: [current], cluster: [labels]}
"""

import argparse
import heapq
import json
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

VERSION = "federation.kubeadmiral.io/v1beta1"
BODY_BYTES_MAX = 16 << 20
GRAMS = {"hydro": 25, "nuclear": 40, "mixed": 250, "coal": 800}
GRAMS_UNKNOWN = 475
INT32_MAX = 2**31 - 1


def divide(unit: dict[str, Any], clusters: list[dict[str, Any]], grams: dict[str, int]) -> dict[str, int]:
    """Return replicas per cluster: the minimums first, then by weight within free capacity, then beyond it."""
    weights = {c["name"]: 1 / max(1, grams.get(c["labels"].get("grid", ""), GRAMS_UNKNOWN)) for c in clusters}
    most = {c["name"]: c.get("maxReplicas", INT32_MAX) for c in clusters}
    held = {c["name"]: unit["current"].get(c["name"]) or 0 for c in clusters}
    fitting = {c["name"]: min(most[c["name"]], held[c["name"]] + c.get("room", INT32_MAX)) for c in clusters}
    given = dict.fromkeys(weights, 0)
    left: int = unit["desiredReplicas"]
    for cluster in clusters:
        least = min(cluster.get("minReplicas", 0), most[cluster["name"]], left)
        given[cluster["name"]], left = least, left - least
    for limits in (fitting, most):
        left = distribute(left, given, limits, weights)
    return given


def distribute(left: int, given: dict[str, int], limits: dict[str, int], weights: dict[str, float]) -> int:
    """Add single replicas where the weight per replica is highest, ties by name; return the unplaced rest."""
    candidates = [(-weights[name] / (given[name] + 0.5), name) for name in given]
    heapq.heapify(candidates)
    while left and candidates:
        _, name = heapq.heappop(candidates)
        if given[name] < limits[name]:
            given[name], left = given[name] + 1, left - 1
            heapq.heappush(candidates, (-weights[name] / (given[name] + 0.5), name))
    return left


def respond(request: dict[str, Any], grams: dict[str, int]) -> dict[str, Any]:
    """Divide the desired replicas; those beyond the limits are `unplaced`."""
    wanted, offered = request["unit"]["desiredReplicas"], request["clusters"]
    given = divide(request["unit"], offered, grams)
    clusters = [
        {
            "name": cluster["name"],
            "replicas": given[cluster["name"]],
            "reasons": [f"{grams.get(cluster['labels'].get('grid', ''), GRAMS_UNKNOWN)} g CO2 per kWh"],
        }
        for cluster in offered
    ]
    head = {"apiVersion": VERSION, "kind": "PluginResponse", "uid": request["uid"]}
    return {**head, "clusters": clusters, "unplaced": wanted - sum(given.values())}


class Intensity:
    """The table, reloaded when its file changes."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen = -1
        self._grams = dict(GRAMS)

    def current(self) -> dict[str, int]:
        """Return grams per grid."""
        if self._path is not None and (seen := self._path.stat().st_mtime_ns) != self._seen:
            self._grams, self._seen = {**GRAMS, **json.loads(self._path.read_text())}, seen
        return self._grams


class Handler(BaseHTTPRequestHandler):
    """Serves replicas requests."""

    protocol_version = "HTTP/1.1"
    timeout = 60
    intensity = Intensity(None)

    def do_POST(self) -> None:
        """Serve one request."""
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(min(length, BODY_BYTES_MAX))
        if self.path != "/replicas":
            self._send(404, {"error": f"no such path: {self.path}"})
            return
        try:
            self._send(200, respond(json.loads(body), self.intensity.current()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._send(400, {"error": f"not understood: {error!r}"})
        except OSError as error:
            self._send(500, {"error": f"the table cannot be read: {error}"})

    def _send(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Carbon-aware replicas for the scheduler")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8902, help="0 picks a free one")
    parser.add_argument("--intensity", type=Path, help="a JSON file with grams of CO2 per kWh by grid")
    parser.add_argument("--certificate", type=Path, help="serve https with this certificate, in PEM")
    parser.add_argument("--key", type=Path, help="the certificate's key, in PEM")
    options = parser.parse_args()
    Handler.intensity = Intensity(options.intensity)
    server = ThreadingHTTPServer((options.host, options.port), Handler)
    server.daemon_threads = True
    scheme = "http"
    if options.certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options.certificate, options.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        scheme = "https"
    print(f"listening on {scheme}://{options.host}:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
