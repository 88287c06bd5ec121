"""The adapters read every form of a case that its format allows: keys that are absent, null or empty.

Each case of every file is given to its adapter again with one key removed, or null, in turn, at every depth. A key
whose value was empty means the same in all three forms, so the adapter still passes. Another key changes what the
case says, so the adapter may find a difference, but it reads the case.
"""

import copy
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.vectors import BATCHES, FOLDER, Batch, load, operation

load("adoption")  # skips this module when there are no vectors

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py") if path.stem != Path(__file__).stem)
REQUIRED = {
    "op",
    "plugin",
    "target",
    "kind",
    "key",
    "cluster",
    "name",
    "code",
    "source",
    "metadata",
    "controller",
    "resourceName",
    "function",
    "manifest",
}
"""Keys that say what a case is about."""
OPAQUE = {
    *(
        "source",
        "template",
        "overriders",
        "overrideRules",
        "sourceObject",
        "clusterObjects",
        "pods",
        "nodes",
        "profile",
    ),
    *("oldPod", "newPod", "desired", "a", "b", "response", "targetClusters", "policy", "affinity", "tolerations"),
    *("taints", "conditions", "apiResourceTypes", "reschedulePolicy", "customNodeResources", "object"),
    *("manifest", "patch", "pod", "workloadSpread", "existing", "workloadObject"),
    *("annotations", "labels", "secretData", "observed", "sourceAnnotations", "fedAnnotations", "registry", "enabled"),
    *("migrationConfig", "status", "clusterLabels", "clusterTaints", "clusterAPIResources", "new", "old", "src", "dst"),
    *("steps", "workload", "podTemplate", "hpa", "serviceImport"),
}
"""Kubernetes objects, which the product reads as they are, and maps whose keys are data."""
MAPS = {
    "matchLabels",
    *("rsp", "currentReplicaCount", "estimatedCapacity", "limitedCapacity", "scheduledReplicas", "existing"),
    *("actualCapacity", "currentClusters", "clusterSelector", "clusterNames", "minReplicas", "maxReplicas", "weights"),
    *("priorities", "statusMap", "generationMap", "clusterAvailables", "weightLimit", "scalarResources"),
    *("allocatable", "available"),
    *("current", "specified", "nextReplicas", "partitions"),
}
"""Maps whose keys are names of clusters, labels or resources: every key says something."""
DISTINCT = {"su", "maxClusters", "desiredReplicas", "now_plus_ns", "resources", "percentSubset"}
"""Keys for which absent and empty differ: no limit, no number, no unit."""
DISTINCT_OF = {"test_kruise_ud_allocation": {"replicas"}}
"""The same for single adapters: a UnitedDeployment without a total differs from one with 0 replicas."""
DEAR = {"test_kruise_ud_scenarios": "every variant of a case is played in a simulated member"}
UNREADABLE = (KeyError, TypeError, AttributeError, IndexError)
KeyPath = tuple[str | int, ...]


def adapters() -> list[Any]:
    """Return the batch of every test function of the folder that reads cases."""
    names = [f"tests.conformance.vectors.{stem}" for stem in MODULES]
    for name in names:
        importlib.import_module(name)
    found = []
    for (module, name), batch in sorted(BATCHES.items(), key=lambda each: each[0]):
        stem = module.rpartition(".")[2]
        marks = [pytest.mark.slow(DEAR[stem])] if stem in DEAR else []
        found.append(pytest.param(batch, id=f"{stem}::{name}", marks=marks))
    return found


def optional_keys(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of all optional keys of a case's input or expectation."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if isinstance(value, dict) and key not in REQUIRED and not (path and path[-1] in MAPS):
            yield (*path, key)
        if key not in OPAQUE and path[:1] != ("expected",):
            yield from optional_keys(inner, (*path, key))


def variants(case: dict[str, Any], distinct: set[str]) -> Iterator[tuple[dict[str, Any], KeyPath, str, bool]]:
    """Yield changed copies of the case: the path, the form, and whether it still says the same."""
    paths = [path for path in optional_keys({side: case[side] for side in ("input", "expected")}) if len(path) > 1]
    for path in paths:
        for form in ("absent", "null"):
            changed = copy.deepcopy(case)
            parent: Any = changed
            for key in path[:-1]:
                parent = parent[key]
            value = parent.pop(path[-1])
            if form == "null":
                parent[path[-1]] = None
            if path[-1] != "error" or not value:
                yield changed, path, form, not value and path[-1] not in distinct


WITHOUT_ADAPTER = {
    ("hpa_util", "addPending"): "our pipeline has no stage of the autoscaler's own",
    ("hpa_util", "removePending"): "our pipeline has no stage of the autoscaler's own",
    ("mcs", "derivedServiceFedObject"): "the Service itself is placed; there is no second federated object",
    ("seeds-003-kubeadmiral", ""): "tests/e2e/test_seeds_003.py and scenarios apply its manifests",
}
IN_SCENARIOS = {
    "001-9 HPA on the UnitedDeployment": "tests/scenarios/test_united_autoscaling.py",
    "001-11 API sketch: Topology/Subset": "tests/scenarios/test_united_deployments_across_clusters.py",
    "001-12 API sketch: update strategy": "tests/scenarios/test_united_rollouts_across_clusters.py",
}
"""Cases of seeds that other tests cover."""


def test_every_case_has_an_adapter() -> None:
    adapters()
    checked = {orjson.dumps(case) for batch in BATCHES.values() for case in batch.cases}
    # The cases of two plugins share one adapter, which adds their name.
    checked |= {
        orjson.dumps({key: value for key, value in case.items() if key != "plugin"})
        for batch in BATCHES.values()
        for case in batch.cases
    }
    missing = [
        f"{path.stem}: {case['name']}"
        for path in sorted(FOLDER.glob("*.json"))
        for case in load(path.stem)
        if orjson.dumps(case) not in checked
        and case["name"] not in IN_SCENARIOS
        and (path.stem, operation(case)) not in WITHOUT_ADAPTER
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("adapter", adapters())
def test_absent_null_and_empty_keys_are_read(adapter: Batch) -> None:
    seen: set[str] = set()
    problems = []
    distinct = DISTINCT | DISTINCT_OF.get(adapter.check.__module__.rpartition(".")[2], set())
    for case in adapter.cases:
        for changed, path, form, is_same in variants(case, distinct):
            what = f"{[p for p in path if isinstance(p, str)]} {form} {changed['input'].get('op')} {is_same}"
            if what in seen:
                continue
            seen.add(what)
            try:
                adapter.check(changed)
            except pytest.skip.Exception:
                continue
            except (AssertionError, pytest.fail.Exception) as error:
                if is_same:
                    problems.append(f"{case['name']}: {what}: {str(error)[:300]}")
            except Exception as error:  # noqa: BLE001 - whatever the adapter raises is reported with its case
                if is_same or isinstance(error, UNREADABLE):
                    problems.append(f"{case['name']}: {what}: {type(error).__name__} {error}")
    assert not problems, "\n".join(problems)
