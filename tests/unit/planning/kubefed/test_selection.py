"""The clusters that the placement of a KubeFed object selects."""

from typing import Any

import pytest

from federation.planning.kubefed.selection import Selection, to_label_selection, to_selection

EXISTS = {"key": "a", "operator": "Exists"}


@pytest.mark.parametrize(
    ("placement", "listed", "labelled"),
    [
        (None, None, None),
        ({}, None, None),
        ({"clusterSelector": {}}, Selection(None, (), ()), Selection(None, (), ())),
        ({"clusters": []}, Selection(()), None),
        ({"clusters": [{"name": "b"}, {"name": "a"}, {"name": "b"}]}, Selection(("b", "a")), None),
        ({"clusters": [{"name": "b"}], "clusterSelector": {}}, Selection(("b",)), Selection(None, (), ())),
        (
            {"clusterSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [EXISTS]}},
            Selection(None, (("a", "b"),), ({**EXISTS, "values": []},)),
            Selection(None, (("a", "b"),), ({**EXISTS, "values": []},)),
        ),
    ],
)
def test_a_list_goes_before_labels(
    placement: dict[str, Any] | None, listed: Selection | None, labelled: Selection | None
) -> None:
    assert to_selection(placement) == listed
    assert to_label_selection(placement) == labelled
