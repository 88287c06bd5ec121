"""Kubernetes' own end-to-end suite against an API server: the API machinery specs that need no containers.

`run(kubeconfig, directory)` returns each spec with its outcome. The controllers of Kubernetes and a Ready node must run.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from tests.kubernetes.build import E2E, binaries_of

FOCUS: Final = (
    r"\[sig-api-machinery\].*(Watchers|FieldValidation|CustomResourceDefinition |CustomResourceDefinition resources"
    r"|CustomResourcePublishOpenAPI|Discovery|AggregatedDiscovery|Garbage collector|chunking|Table transformation"
    r"|ValidatingAdmissionPolicy|MutatingAdmissionPolicy|Namespaces|ResourceQuota|ServerSideApply|server version"
    r"|API priority).*"
)
SKIP: Final = (
    r"\[Slow\]|\[Serial\]|\[Feature|\[Disruptive\]|Flaky|all pods are removed|Alpha|Beta|OrderedNamespaceDeletion"
    r"|delete pods created by rc|keep the rc around|orphan pods|not delete dependents|not be blocked by dependency"
    r"|life of a pod|terminating scopes|best effort"
)
UNSTABLE: Final = r"Garbage collector|ResourceQuota"
"""Specs with fixed waits: they also fail on a real server when the machine is busy, so they do not stop a landing."""
TIMEOUT_S: Final = 45 * 60


@dataclass(frozen=True, slots=True)
class Spec:
    """One spec of the suite."""

    name: str
    failure: str
    """Its first lines, "" when it passed."""


def run(kubeconfig: Path, directory: Path, *, focus: str = FOCUS, skip: str = SKIP) -> list[Spec]:
    """Run the selected specs and return those that were not skipped, by name; AssertionError when none ran."""
    directory.mkdir(parents=True, exist_ok=True)
    report = directory / "junit.xml"
    log = directory / "e2e.log"
    command = [
        *(str(binaries_of() / E2E), f"-kubeconfig={kubeconfig}", "-provider=skeleton"),
        *(f"-ginkgo.focus={focus}", f"-ginkgo.skip={skip}", f"-ginkgo.junit-report={report}"),
        *("-ginkgo.timeout=40m", "-num-nodes=1", "-allowed-not-ready-nodes=-1", "-system-daemonsets-startup-timeout=0"),
        *("-node-schedulable-timeout=1m", "-disable-log-dump", "-delete-namespace-on-failure=true"),
    ]
    with log.open("w") as output:
        subprocess.run(command, stdout=output, stderr=output, cwd=directory, timeout=TIMEOUT_S, check=False)
    assert report.is_file(), f"the suite did not run:\n{log.read_text()[-3000:]}"
    specs = sorted(_read(report), key=lambda spec: spec.name)
    assert specs, f"no spec was selected:\n{log.read_text()[-3000:]}"
    return specs


def _read(report: Path) -> list[Spec]:
    specs = []
    for case in ET.parse(report).iter("testcase"):  # made by the suite
        name = re.sub(r"^\[It\] ", "", case.get("name", ""))
        if case.find("skipped") is not None or not name.startswith("[sig-"):
            continue
        failed = case.find("failure")
        if failed is None:
            failed = case.find("error")
        specs.append(Spec(name, "" if failed is None else (failed.get("message") or failed.text or "failed")[:500]))
    return specs
