"""Generate the default roles and bindings of Kubernetes: `python -m tools.generate_bootstrappolicy`.

They are read from a real kube-apiserver, which `make kubernetes` builds. The result,
`federation/apiserver/auth/bootstrappolicy.json`, has one object per line and is committed.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import orjson
from tests.kubernetes.cluster import Cluster, real_cluster
from tests.support.federation import eventually

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "federation" / "apiserver" / "auth" / "bootstrappolicy.json"
PLURALS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
_LABEL = "kubernetes.io/bootstrapping"
_LAST = "system:controller:bootstrap-signer"
"""The RoleBinding of this name in `kube-public` is the last that kube-apiserver creates."""
_TIMEOUT_S = 30.0


def generate(cluster: Cluster) -> str:
    """Return the text of the file, from a running cluster."""
    api = cluster.api()
    try:
        eventually(
            lambda: [each["metadata"]["name"] for each in _listed(api, "rolebindings")],
            lambda names: names.count(_LAST) == 2,
            timeout_s=_TIMEOUT_S,
            what="default roles of kube-apiserver",
        )
        lines = [orjson.dumps([plural, _stripped(obj)]).decode() for plural in PLURALS for obj in _listed(api, plural)]
    finally:
        api.close()
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _listed(api: Any, plural: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.send("GET", f"/apis/rbac.authorization.k8s.io/v1/{plural}").json()["items"]
    return [obj for obj in found if _LABEL in (obj["metadata"].get("labels") or {})]


def _stripped(obj: dict[str, Any]) -> dict[str, Any]:
    """Return what the bootstrap policy says of an object: without server fields and the marks of all its objects."""
    metadata = obj["metadata"]
    labels = {name: value for name, value in metadata["labels"].items() if name != _LABEL}
    kept = {"name": metadata["name"], "namespace": metadata.get("namespace"), "labels": labels}
    fields = {name: obj.get(name) for name in ("rules", "aggregationRule", "roleRef", "subjects")}
    return {
        "metadata": {name: value for name, value in kept.items() if value},
        **{name: value for name, value in fields.items() if value},
    }


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as directory, real_cluster(Path(directory), controllers=False) as cluster:
        TARGET.write_text(generate(cluster))
    sys.stderr.write(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
