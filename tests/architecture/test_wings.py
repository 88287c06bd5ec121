"""Each leaf feature is one folder with a record that the collectors read, and what the record names exists."""

import pytest
from tests.support.sources import ROOT

from federation.featureapi.feature import Feature
from federation.features.catalogue import FEATURES, feature_screens
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


def test_one_wing_reads_workload_spreads_for_the_scheduler() -> None:
    assert [feature.name for feature in FEATURES if feature.spreads is not None] == ["workloadspread"]


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
