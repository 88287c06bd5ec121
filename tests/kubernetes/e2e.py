"""Kubernetes' own end-to-end suite against an API server: the API machinery specs that need no containers.

`run(kubeconfig, directory)` returns the failures of the specs. The controllers of Kubernetes and a Ready node must run.
"""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.kubernetes.build import E2E, binaries_of
from tests.kubernetes.junit import read_report

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
TIMEOUT_S: Final = 30 * 60


def focus_on(specs: Iterable[str]) -> str:
    """Return the focus that selects specs by the names in the report, which end with the labels of the spec."""
    names = [re.sub(r" \[[^]]*\]$", "", name) for name in sorted(specs)]
    return "|".join(re.escape(name).replace("\\ ", " ") for name in names)  # Go knows no escaped space


def run(kubeconfig: Path, directory: Path, *, focus: str = FOCUS, skip: str = SKIP) -> dict[str, str]:
    """Run the selected specs and return their failures, "" for those that passed; AssertionError when none ran."""
    directory.mkdir(parents=True, exist_ok=True)
    report = directory / "junit.xml"
    log = directory / "e2e.log"
    command = [
        *(str(binaries_of() / E2E), f"-kubeconfig={kubeconfig}", "-provider=skeleton"),
        *(f"-ginkgo.focus={focus}", f"-ginkgo.skip={skip}", f"-ginkgo.junit-report={report}"),
        *("-ginkgo.timeout=25m", "-num-nodes=1", "-allowed-not-ready-nodes=-1", "-system-daemonsets-startup-timeout=0"),
        *("-node-schedulable-timeout=1m", "-disable-log-dump", "-delete-namespace-on-failure=true"),
    ]
    with log.open("w") as output:
        subprocess.run(command, stdout=output, stderr=output, cwd=directory, timeout=TIMEOUT_S, check=False)
    assert report.is_file(), f"the suite did not run:\n{log.read_text()[-3000:]}"
    tests = ((name.removeprefix("[It] "), failure) for _, name, failure in read_report(report))
    specs = {name: failure for name, failure in tests if name.startswith("[sig-")}
    assert specs, f"no spec was selected:\n{log.read_text()[-3000:]}"
    return specs
