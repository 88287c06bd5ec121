"""The federation that the tests of one worker share: three simulated members, started by the first test that uses it.

Its rules: a test works in namespaces of its own (`new_namespace`), gives cluster-scoped objects names that no other test
uses, removes them, and leaves the clusters as it found them: joined, ready, labelled and tainted as before. It restarts
nothing, and deletes no namespace that it can leave: the guard holds the eleventh deletion within ten minutes. Its
policies divide by weights: without them free capacity decides, which the pods of other tests change; the API refuses
such policies unless they say with the label `division: anyhow` that their test accepts every division. A test that
cannot keep these rules starts a federation of its own, and its module says why.
"""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.federation import Federation, federation

_NUMBERS = itertools.count(1)
_DIVIDES_BY_WEIGHTS = """
object.spec.schedulingMode != 'Divide' || object.?metadata.labels['division'].orValue('') == 'anyhow' ||
object.spec.?placement.orValue([]).exists(each, has(each.preferences) && has(each.preferences.weight))
"""


@contextmanager
def shared(directory: Path) -> Iterator[Federation]:
    """Run the federation during the block, and check afterwards that its clusters are as they were."""
    with federation(directory) as running, _ended_with_this_process(running):
        before = clusters_of(running)
        running.kubectl.apply(*_rule_about_weights())
        yield running
        assert clusters_of(running) == before, "a test left the clusters of the shared federation changed"


def new_namespace(fed: Federation, prefix: str) -> str:
    """Create a namespace that no other test uses, and return its name."""
    name = f"{prefix}-{next(_NUMBERS)}"
    fed.api("").create("namespaces", {"metadata": {"name": name}})
    return name


def clusters_of(fed: Federation) -> dict[str, Any]:
    """Return labels, taints and readiness of the clusters, by name."""
    return {
        cluster["metadata"]["name"]: (
            cluster["metadata"].get("labels"),
            cluster["spec"].get("taints"),
            [each["status"] for each in cluster["status"]["conditions"] if each["type"] == "Ready"],
        )
        for cluster in fed.api("").list("federatedclusters")["items"]
    }


def _rule_about_weights() -> list[dict[str, Any]]:
    """Return the admission policy that refuses policies whose division depends on what other tests run."""
    kind, metadata = "ValidatingAdmissionPolicy", {"name": "division-by-weights"}
    rule = {
        "apiGroups": ["core.kubeadmiral.io"],
        "apiVersions": ["*"],
        "resources": ["propagationpolicies", "clusterpropagationpolicies"],
        "operations": ["CREATE", "UPDATE"],
    }
    validation = {
        "expression": _DIVIDES_BY_WEIGHTS,
        "message": "a test on the shared federation divides by weights: see tests/support/shared.py",
    }
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]}
    binding = {"policyName": metadata["name"], "validationActions": ["Deny"]}
    version = "admissionregistration.k8s.io/v1"
    return [
        {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec},
        {"apiVersion": version, "kind": f"{kind}Binding", "metadata": metadata, "spec": binding},
    ]


@contextmanager
def _ended_with_this_process(fed: Federation) -> Iterator[None]:
    """Interrupt the federation when this process ends, even if it is killed: then the pipe closes."""
    command = ["sh", "-c", f"read _; kill -INT {fed.process.pid}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as guard:
        yield
        guard.kill()
