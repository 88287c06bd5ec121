"""What the page of a hold says about its approval."""

import pytest

from federation.web.ui.holdscreen import consequence_of

CASES = [
    (
        {"cause": "Deletion shop/PersistentVolumeClaim", "count": 12},
        "Deletion of 12 PersistentVolumeClaims in namespace shop",
        "Delete 12 PersistentVolumeClaims",
    ),
    ({"cause": "Deletion Namespace", "count": 1}, "Deletion of 1 Namespace", "Delete 1 Namespace"),
    ({"cause": "PropagationPolicy shop/web", "count": 30}, "30 objects moved by PropagationPolicy shop/web", "Move 30 objects"),
    ({"cause": "FederatedCluster east", "count": 1}, "1 object moved by FederatedCluster east", "Move 1 object"),
    ({"cause": "Following shop/ConfigMap", "count": 3}, "3 objects that would leave their workloads", "Let 3 objects leave"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "title", "button"), CASES)
def test_title_and_button_name_what_happens(spec: dict[str, object], title: str, button: str) -> None:
    found = consequence_of(spec)
    assert (found.title, found.button) == (title, button)
    assert str(spec["count"]) in found.text


def test_only_deletions_are_final() -> None:
    final = [consequence_of(spec).is_final for spec, _, _ in CASES]
    assert final == [True, True, False, False, False]
    assert "cannot be undone" in consequence_of(CASES[0][0]).text
