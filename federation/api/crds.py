"""The CustomResourceDefinitions of our kinds at run time.

They are generated from `api/v1alpha1` by `tools/generate_crds.py` into `crds.json` (here) and `charts/federation/crds`
(for a host that is an existing Kubernetes cluster). Reading the file instead of the models keeps pydantic out of the
control plane's start; a test fails when file and models differ. The kinds of apps.kruise.io are OpenKruise's, too, and
those of types.kubefed.io and scheduling.kubefed.io KubeFed's: their manifests carry a label, and a definition on the
host without that label is the other project's and is not replaced.
"""

from importlib.resources import files
from typing import Any

import orjson


def crd_manifests() -> list[dict[str, Any]]:
    """Return one CustomResourceDefinition manifest per kind, sorted by name; each call parses them again."""
    manifests: list[dict[str, Any]] = orjson.loads(files("federation.api").joinpath("crds.json").read_bytes())
    return manifests
