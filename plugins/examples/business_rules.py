"""A scheduler plugin as a web service: restrict the clusters of each team.

Start it (it needs only Python):

    python plugins/examples/business_rules.py --port 8900

Objects have the label `team`; the label `teams` of a cluster lists the allowed teams ("a_b_c"), without it all are
allowed. The service supports `v1beta1` (one request for all clusters, with reasons) and KubeAdmiral's `v1alpha1`.

    apiVersion: core.kubeadmiral.io/v1alpha1
    kind: SchedulerPluginWebhookConfiguration
    metadata: {name: business-rules}
    spec:
      payloadVersions: [v1beta1, v1alpha1]
      urlPrefix: http://127.0.0.1:8900
      filterPath: /filter
      fields: {unit: [labels], cluster: [labels]}
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

VERSION = "federation.kubeadmiral.io/v1beta1"
BODY_BYTES_MAX = 16 << 20


def is_allowed(team: str | None, cluster_labels: dict[str, str] | None) -> bool:
    """Return whether the team may use the cluster."""
    teams = (cluster_labels or {}).get("teams")
    return teams is None or team in teams.split("_")


def respond(request: dict[str, Any]) -> dict[str, Any]:
    """Return the response of either protocol; KeyError, TypeError or AttributeError for an invalid request."""
    if request.get("kind") != "PluginRequest":
        unit, cluster = request["schedulingUnit"], request["cluster"]
        team = (unit.get("labels") or {}).get("team")
        return {"selected": is_allowed(team, cluster["metadata"].get("labels")), "error": ""}
    team = request["unit"]["labels"].get("team")
    clusters: list[dict[str, Any]] = []
    for cluster in request["clusters"]:
        if is_allowed(team, cluster["labels"]):
            clusters.append({"name": cluster["name"], "selected": True})
        else:
            reason = f"cluster(s) do not admit team {team}" if team else "cluster(s) admit only objects of a team"
            clusters.append({"name": cluster["name"], "selected": False, "reasons": [reason]})
    return {"apiVersion": VERSION, "kind": "PluginResponse", "uid": request["uid"], "clusters": clusters}


class Handler(BaseHTTPRequestHandler):
    """Serves filter requests."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self) -> None:
        """Serve one request; an invalid one is an error and never accepts a cluster."""
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(min(length, BODY_BYTES_MAX))
        if self.path != "/filter":
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
