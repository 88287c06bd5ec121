"""A scheduler plugin as a web service: prefer cheap clusters.

Start it (it needs only Python):

    python plugins/examples/cost_score.py --port 8901

Clusters have the label `price-class`; a table has the price of a core and of a GiB for each class, in cents per hour.
`--prices` names a file with another table: {"class": {"core": 2.1, "gib": 0.3}, …}; "default" is the price of unknown
classes. The cheapest cluster scores 100, one at twice the price 50. `fedctl why` shows the price per replica.

    apiVersion: core.kubeadmiral.io/v1alpha1
    kind: SchedulerPluginWebhookConfiguration
    metadata: {name: cost}
    spec:
      payloadVersions: [v1beta1]
      urlPrefix: http://127.0.0.1:8901
      scorePath: /score
      failurePolicy: Ignore  # schedule without prices when the service is unavailable
      fields: {unit: [resourceRequest], cluster: [labels]}
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

VERSION = "federation.kubeadmiral.io/v1beta1"
BODY_BYTES_MAX = 16 << 20
PRICES: dict[str, dict[str, float]] = {
    "spot": {"core": 0.9, "gib": 0.1},
    "reserved": {"core": 2.0, "gib": 0.25},
    "default": {"core": 3.2, "gib": 0.4},
}
UNITS = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def to_number(quantity: str) -> float:
    """Return a Kubernetes quantity ("250m", "1Gi") as a number."""
    for unit, factor in UNITS.items():
        if quantity.endswith(unit) and quantity.removesuffix(unit).replace(".", "").isdigit():
            return float(quantity.removesuffix(unit)) * factor
    return float(quantity)


def cost(request: dict[str, str], labels: dict[str, str]) -> float:
    """Return the price of one replica in a cluster with these labels, in cents per hour."""
    price = PRICES.get(labels.get("price-class", "default"), PRICES["default"])
    cores, bytes_ = to_number(request.get("cpu", "0")), to_number(request.get("memory", "0"))
    # A replica without requests is priced as one core.
    return (cores * price["core"] + bytes_ / 2**30 * price["gib"]) or price["core"]


def respond(request: dict[str, Any]) -> dict[str, Any]:
    """Score every cluster from 0 to 100."""
    requested = request["unit"]["resourceRequest"]
    costs = {cluster["name"]: cost(requested, cluster["labels"]) for cluster in request["clusters"]}
    cheapest = min(costs.values(), default=0.0)
    clusters = [
        {"name": name, "score": round(100 * cheapest / cents), "reasons": [f"{cents:.2f} ct per replica and hour"]}
        for name, cents in costs.items()
    ]
    return {"apiVersion": VERSION, "kind": "PluginResponse", "uid": request["uid"], "clusters": clusters}


class Handler(BaseHTTPRequestHandler):
    """Serves score requests."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self) -> None:
        """Serve one request."""
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(min(length, BODY_BYTES_MAX))
        if self.path != "/score":
            self._send(404, {"error": f"no such path: {self.path}"})
            return
        try:
            self._send(200, respond(json.loads(body)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._send(400, {"error": f"not understood: {error!r}"})

    def _send(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Prices for the scheduler")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8901, help="0 picks a free one")
    parser.add_argument("--prices", type=Path, help="a JSON file with another price table")
    options = parser.parse_args()
    if options.prices is not None:
        PRICES.update(json.loads(options.prices.read_text()))
    server = ThreadingHTTPServer((options.host, options.port), Handler)
    server.daemon_threads = True
    print(f"listening on http://{options.host}:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
