"""Each leaf feature is one folder with a record that the collectors read, and what the record names exists."""

import json
import re
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest
from tests.support.sources import ROOT, sources

from federation.featureapi.feature import Feature
from federation.features.catalogue import FEATURES, feature_screens
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.policyspec import Policy
from federation.web.ui.uiapp import SCREENS

FOLDER = ROOT / "federation" / "features"
PAGES = ROOT / "docs" / "reference"


def test_the_catalogue_lists_every_wing_once() -> None:
    folders = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))
    assert sorted(feature.name for feature in FEATURES) == folders


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_a_wing_has_a_page_in_the_reference(feature: Feature) -> None:
    assert (PAGES / feature.page).is_file()
    assert f"({feature.page})" in (PAGES / "README.md").read_text(encoding="utf-8")


def test_no_two_wings_have_the_same_kind() -> None:
    kinds = [kind.DEFINITION.resource for feature in FEATURES for kind in feature.kinds()]
    assert kinds
    assert len(kinds) == len(set(kinds))


def test_a_wing_brings_its_screens_with_their_templates() -> None:
    found = {screen.path: feature.name for feature in FEATURES for screen in feature.screens()}
    assert found == {
        "/ui/rollouts": "waves",
        "/ui/rollouts/{namespace}/{name}": "waves",
        "/ui/projects": "projects",
        "/ui/queues": "queues",
        "/ui/queues/{namespace}/{name}": "queues",
    }
    for feature in FEATURES:
        folder = FOLDER / feature.name / "templates"
        assert all(screen.templates == folder for screen in feature.screens())
    screens = [*SCREENS, *feature_screens()]
    assert len({screen.path for screen in screens}) == len(screens)
    assert [screen.template for screen in screens if not (screen.templates / screen.template).is_file()] == []


PLAIN_MODULES_MAX, PLAIN_FUNCTIONS_MAX = 349, 1670
"""What a plain Deployment runs (`tools/plaindeployment.py`): modules until it is counted, functions until it is placed."""
WINGLESS_MODULES_MAX, WINGLESS_FUNCTIONS_MAX = 311, 1570
UNIT_FIELDS_MAX = 23
"""Counts of the decision chain, as those below, that may only fall: lower them when a count has fallen."""
POLICY_FIELDS_MAX = 26
WAITING_TYPES_MAX = 32
MENTIONS_MAX = 27
_WAITS = re.compile(
    r"^class (\w*(?:Wait|Hold|Held|Froz|Freez|Suspen|Halt|Stay|Block|Permit|Pace|Budget|Quota|Ledger|Headroom)\w*)",
    re.MULTILINE,
)
_OTHERWISE = re.compile(
    r".*(Options|Reason)"  # settings, and words
    r"|NotFrozen|NotSuspended|VolumesStay|QuotaOfNamespace|scheduling/chain\.Permit"  # steps of the chain
    r"|FlavorQuotas|ResourceQuota|ProjectQuota|WaitingJob"  # parts of kinds
    r"|QuotaUse|PlannedHold|QuotaStatus|StatusLedger"  # records, reports and status of them
    r"|PermittedFollowing|PermittedOverrides|Waiters|BudgetedCluster|PatchBudget|features/workloadspread/.*|rules/keeping\.Holding"
    r"|clusters/memberrights\._Held|clusters/clusterresources\._Hold|replay/recorder\._Waiting|steps/steps\._Budget"
)
"""Those of them that neither wait, nor hold, nor limit what many use: by name, or by the end of module and name."""
_DECIDING = (
    "federation/scheduling",
    "federation/planning",
    "federation/guard",
    "federation/delivery",
    "federation/controllers",
    "federation/features",
)


def plain_deployment(*options: str) -> dict[str, Any]:
    """Return what a plain Deployment runs in a new process."""
    command = [sys.executable, "-m", "tools.plaindeployment", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{\n") :])
    assert found["replicas"] == {"east": 2, "west": 2}
    assert found["available"] == 4
    return found


@pytest.mark.slow("a federation under a profiler, and all imports of the product")
def test_without_wings_all_else_imports_and_a_plain_deployment_is_placed_delivered_and_counted() -> None:
    """The catalogue has the shipped types alone, and no other folder of a feature can be imported."""
    found = plain_deployment("--without-wings", "--start")
    assert found["wings"] == ["catalogue", "types"]
    assert found["imported"] > 1000
    assert found["url"].startswith("https://")
    assert found["modules"] <= WINGLESS_MODULES_MAX
    assert found["functions"] <= WINGLESS_FUNCTIONS_MAX


SPINE = ("first_propagation", "no_feasible_cluster", "override_failure", "cluster_lost_and_back")
"""Scenarios that need no leaf feature."""


@pytest.mark.slow("scenarios in a process without wings")
def test_without_wings_the_scenarios_of_the_spine_pass() -> None:
    """Where the folders of the features were deleted, objects are placed, moved and delivered as ever."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "tests.support.wingless",
        "-p",
        "no:cacheprovider",
    ]
    command += [f"tests/scenarios/test_{name}.py" for name in SPINE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-8000:]
    assert "no tests ran" not in done.stdout


@pytest.mark.slow("a federation under a profiler")
def test_a_plain_deployment_runs_no_further_modules_and_functions() -> None:
    found = plain_deployment()
    assert found["wings"] == sorted({"catalogue", *(feature.name for feature in FEATURES)})
    assert found["modules"] <= PLAIN_MODULES_MAX
    assert found["functions"] <= PLAIN_FUNCTIONS_MAX


def test_the_unit_and_the_policy_get_no_further_fields() -> None:
    """A feature adds a shape, which reads the object, and no field that all others carry."""
    assert len(fields(SchedulingUnit)) <= UNIT_FIELDS_MAX
    assert len(fields(Policy)) <= POLICY_FIELDS_MAX


def test_no_two_shapes_have_the_same_key() -> None:
    """Two features with one key would read each other's shape."""
    found = [
        name for source in sources("federation", "plugins") for name in re.findall(r'ShapeKey\("(\w+)"', source.text)
    ]
    assert len(found) > 10
    assert len(found) == len(set(found))


def test_there_are_no_further_types_that_wait_hold_or_limit() -> None:
    """A gate or permit answers with `Wait` or `Leave`, and amounts are on the ledger. Classes of one name count each."""
    every = [f"{source.name[:-3]}.{name}" for source in sources(*_DECIDING) for name in _WAITS.findall(source.text)]
    found = [each for each in every if not re.fullmatch(rf"(.*[/.])?({_OTHERWISE.pattern})", each)]
    assert len(found) <= WAITING_TYPES_MAX, found


def test_no_further_files_outside_a_feature_name_it() -> None:
    """The spine does not know its wings; the catalogue and the wiring of commands do."""
    names = [feature.name for feature in FEATURES]
    found = [
        f"{source.name}: {name}"
        for source in sources("federation")
        for name in names
        if f"features/{name}/" not in source.name and re.search(rf"features[./]{name}\b", source.text)
    ]
    assert len(found) <= MENTIONS_MAX, found
