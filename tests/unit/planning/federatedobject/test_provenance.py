"""Whether a source still wants a federated object that is being deleted."""

from dataclasses import replace
from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import Ending, default_type_configs, from_config
from federation.planning.federatedobject import builder
from federation.planning.federatedobject.provenance import is_wanted

DEPLOYMENT = next(
    from_config(config) for config in default_type_configs() if config["spec"]["sourceType"]["kind"] == "Deployment"
)


def _source(**metadata: Any) -> dict[str, Any]:
    head = {"name": "web", "namespace": "default", "uid": "u1", **metadata}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": head, "spec": {}}


def test_a_living_source_wants_its_federated_object() -> None:
    assert is_wanted(builder.build(_source(), DEPLOYMENT), DEPLOYMENT, _source())


@pytest.mark.parametrize(
    "source",
    [
        _source(deletionTimestamp="2026-01-01T00:00:00Z"),
        _source(uid="u2"),
        _source(name="other"),
        _source(annotations={names.NO_FEDERATED_RESOURCE: "true"}),
    ],
    ids=["being deleted", "another object of the name", "another name", "excluded"],
)
def test_no_other_source_wants_it(source: dict[str, Any]) -> None:
    assert not is_wanted(builder.build(_source(), DEPLOYMENT), DEPLOYMENT, source)


@pytest.mark.parametrize(("ending", "expected"), [(Ending.WAITS, True), (Ending.ORPHAN, False), (Ending.REMOVE, False)])
def test_a_type_that_ends_as_asked_lets_its_federated_objects_go(ending: Ending, expected: bool) -> None:
    type_ = replace(DEPLOYMENT, ending=ending)
    assert is_wanted(builder.build(_source(), DEPLOYMENT), type_, _source()) is expected
