"""The manifests that a real API server and ours are sent.

`manifests()` yields the objects of Kubernetes' own test files (found in Go's module cache), of this repository, and of
`seeds/`, which has valid objects of the built-in kinds with many fields set. Templates that are not YAML are left out.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

HERE: Final = Path(__file__).resolve().parents[1]
REPOSITORY: Final = HERE.parents[1]
_KUBERNETES: Final = (
    *("test/e2e/testing-manifests", "test/e2e_node", "test/fixtures", "test/integration/scheduler_perf"),
    *("test/kubemark", "test/conformance", "test/images", "cluster", "hack/testdata", "pkg/controller"),
    *("cmd/kubeadm/app/util/staticpod", "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"),
)
_OURS: Final = ("examples", "tests/support/hostile")


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object and where it is from."""

    origin: str
    obj: dict[str, Any]


def manifests() -> Iterator[Manifest]:
    """Yield every manifest once; those of `seeds()` are not among them."""
    seen: set[str] = set()
    kubernetes = kubernetes_sources()
    folders = [(kubernetes, folder) for folder in _KUBERNETES] + [(REPOSITORY, folder) for folder in _OURS]
    for root, folder in folders:
        for manifest in _of_folder(root, folder):
            text = json.dumps(manifest.obj, sort_keys=True, default=str)
            if text not in seen:
                seen.add(text)
                yield manifest


def seeds() -> list[Manifest]:
    """Return the valid manifests from which `mutations.py` makes invalid ones."""
    return list(_of_folder(HERE, "seeds"))


def kubernetes_sources() -> Path:
    """Return the folder of Kubernetes' module in Go's module cache."""
    return _module("k8s.io/kubernetes")


def _module(name: str) -> Path:
    command = ["go", "list", "-m", "-f", "{{.Dir}}", name]
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    found = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=True).stdout
    return Path(found.strip())


def _of_folder(root: Path, folder: str) -> Iterator[Manifest]:
    for path in sorted((root / folder).rglob("*")):
        if path.suffix in {".yaml", ".yml", ".json"} and path.is_file():
            for index, obj in enumerate(_objects(path)):
                yield Manifest(f"{path.relative_to(root)}#{index}", obj)


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: a time stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
# "1e3" is a number in JSON and in Go, and text in YAML 1.1 because it has no dot.
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+"), list("-+0123456789"))


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    try:
        documents = list(yaml.load_all(path.read_text(), _Loader))
    except (yaml.YAMLError, UnicodeDecodeError):
        return
    for document in documents:
        yield from _flattened(document)


def _flattened(document: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        return
    if document["kind"] == "List" and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _flattened(item)
    elif isinstance(document.get("apiVersion"), str):
        try:
            yield json.loads(json.dumps(document))
        except (TypeError, ValueError):
            return
