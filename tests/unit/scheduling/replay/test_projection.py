"""Objects in records: the clusters' part of their triggers is kept once, and comes back as it was."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.apimachinery.errors import ConfigurationError
from federation.scheduling.replay.logentries import ClusterPlaces
from federation.scheduling.replay.projection import project_federated, to_federated

TYPE = next(from_config(each) for each in default_type_configs() if each["metadata"]["name"] == "deployments.apps")
HASHES = dict.fromkeys(("clusterAPIResourceTypesHash", "clusterLabelsHash", "clusterTaintsHash"), "1")


def an_object(triggers: str) -> dict[str, Any]:
    metadata = {"name": "web", "annotations": {names.SCHEDULING_TRIGGERS: triggers}}
    return {"metadata": metadata, "spec": {"template": {"kind": "Deployment", "metadata": {}}}}


def to_text(**fields: Any) -> str:
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS).decode()


@pytest.mark.parametrize(
    ("triggers", "is_shared"),
    [
        (to_text(**HASHES, clusters=["east", "west"], replicaCount=3), True),
        (to_text(**HASHES, autoMigrationInfo="{}", clusters=[], replicaCount=3), True),
        (to_text(**HASHES, clusters=["east"], clustersUnready=["west"], policyName="a"), True),
        (to_text(**HASHES, clusters=["],", "\\"], policyName='"clusters":["a"],'), False),
        (to_text(**HASHES, clusters=["east"]), False),
        (to_text(**HASHES, policyName="a"), False),
        (to_text(replicaCount=3), False),
        ('{"clusterAPIResourceTypesHash":', False),
        ("no object", False),
        ("", False),
    ],
)
def test_triggers_come_back_as_they_were(triggers: str, is_shared: bool) -> None:
    places = ClusterPlaces()
    for _ in range(2):
        projected = project_federated(an_object(triggers), TYPE, places.number_of)
        restored = to_federated(projected, {}, TYPE, places.texts)
        assert (restored["metadata"].get("annotations") or {}).get(names.SCHEDULING_TRIGGERS, "") == triggers
    assert len(places.texts) == is_shared
    assert (len(places.untold_texts()), places.untold_texts()) == (is_shared, [])


def test_a_number_without_a_text_is_a_damaged_record() -> None:
    projected = project_federated(an_object(to_text(**HASHES, clusters=["east"], replicaCount=3)), TYPE, lambda _: 7)
    with pytest.raises(ConfigurationError, match="damaged"):
        to_federated(projected, {}, TYPE, ["only one"])
