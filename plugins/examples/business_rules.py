"""A scheduler plugin as a web service: objects of teams go only where their team may run.

Start it with one command; it needs nothing but Python:

    python plugins/examples/business_rules.py --port 8900

Objects carry the label `team`; a cluster says with the label `teams` who may use it ("a_b_c"), one without admits all.
It speaks the `v1alpha1` protocol: POST /filter {schedulingUnit, cluster} → {selected, error}.

    apiVersion: core.kubeadmiral.io/v1alpha1
    kind: SchedulerPluginWebhookConfiguration
    metadata: {name: business-rules}
    spec: {payloadVersions: [v1alpha1], urlPrefix: "http://127.0.0.1:8900", filterPath: /filter}
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def is_allowed(unit: dict[str, Any], cluster: dict[str, Any]) -> bool:
    """Say whether the unit's team may use the cluster."""
    teams = (cluster["metadata"].get("labels") or {}).get("teams")
    return teams is None or (unit.get("labels") or {}).get("team") in teams.split("_")


class Handler(BaseHTTPRequestHandler):
    """Answers filter calls."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self) -> None:
        """Answer one call; what cannot be understood is an error, never a "yes"."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != "/filter":
            self._answer(404, {"selected": False, "error": f"no such path: {self.path}"})
            return
        try:
            question = json.loads(body)
            selected = is_allowed(question["schedulingUnit"], question["cluster"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._answer(400, {"selected": False, "error": f"not understood: {error!r}"})
            return
        self._answer(200, {"selected": selected, "error": ""})

    def _answer(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Business rules for the scheduler")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8900, help="0 picks a free one")
    options = parser.parse_args()
    server = ThreadingHTTPServer((options.host, options.port), Handler)
    server.daemon_threads = True
    print(f"listening on http://{options.host}:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
