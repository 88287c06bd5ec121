"""Manifests and charts of other projects, as their Go modules carry them. Downloaded once, into Go's module cache."""

import json
import os
import subprocess
from pathlib import Path
from typing import Final

ARGO_CD: Final = ("github.com/argoproj/argo-cd/v3@v3.5.6", "github.com/argoproj/argo-cd/v3@v3.5.7")
CERT_MANAGER: Final = ("github.com/cert-manager/cert-manager@v1.21.1", "github.com/cert-manager/cert-manager@v1.21.2")
PROMETHEUS_OPERATOR: Final = ("github.com/prometheus-operator/prometheus-operator@v0.85.0",)
ALL: Final = (*ARGO_CD, *CERT_MANAGER, *PROMETHEUS_OPERATOR)


def folder_of(module: str) -> Path:
    """Return the folder of a module at a version, downloaded if it is absent; AssertionError when the download fails."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", module],
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout or "{}")
    assert "Dir" in found, f"{module} cannot be downloaded: {found.get('Error') or done.stderr}"
    return Path(found["Dir"])
