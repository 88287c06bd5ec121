"""What a member has of the fields that the federation owns."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.planning.rendering.comparison import owned_part, without_bookkeeping
from federation.planning.rendering.drift import is_subset
from federation.planning.rendering.restarts import changed_pod_fields

WEB = {"name": "web", "image": "nginx:1.27", "resources": {"requests": {"cpu": "500m"}}}
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name"]), inner, max_size=3),
    max_leaves=8,
)


def _deployment(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": list(containers), "restartPolicy": "Always"}}
    selector = {"matchLabels": {"app": "web"}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": selector, "template": template, **spec}}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        ({"replicas": 5, "paused": False}, {"replicas": 5}),
        ({"paused": True}, {}),
        ({"replicas": 3, "status": {}}, {"replicas": 3}),
    ],
)
def test_only_fields_of_the_configuration_are_kept(live: Any, expected: Any) -> None:
    assert owned_part({"replicas": 3}, live) == expected


def test_containers_are_compared_by_name_and_other_ones_left_out() -> None:
    live = _deployment(
        {"name": "sidecar", "image": "proxy"}, {**WEB, "image": "nginx:1.26", "terminationMessagePath": "/x"}
    )
    found = owned_part(_deployment(WEB), live)
    assert found == _deployment({**WEB, "image": "nginx:1.26"})


def test_a_quantity_that_is_written_differently_is_no_difference() -> None:
    live = _deployment({**WEB, "image": "nginx:1.26", "resources": {"requests": {"cpu": "0.5"}}})
    (container,) = owned_part(_deployment(WEB), live)["spec"]["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "500m"}}


@given(_JSON, _JSON)
def test_nothing_differs_exactly_when_the_live_object_has_everything(wanted: Any, live: Any) -> None:
    found = owned_part(wanted, live)
    if is_subset(wanted, live):
        assert found == wanted
    else:
        assert not is_subset(wanted, found)


def test_the_annotations_of_every_version_are_no_difference() -> None:
    annotations = {names.SOURCE_GENERATION: "2", names.TEMPLATE_HASH: "a", "note": "kept"}
    manifest = {"metadata": {"name": "web", "annotations": annotations}}
    assert without_bookkeeping(manifest) == {"metadata": {"name": "web", "annotations": {"note": "kept"}}}
    assert without_bookkeeping({"metadata": {"annotations": {names.TEMPLATE_HASH: "a"}}}) == {"metadata": {}}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (_deployment(WEB), []),
        (_deployment(WEB, replicas=9), []),
        (_deployment({**WEB, "image": "nginx:2"}), ["spec.template.spec.containers"]),
        (
            _deployment(WEB, selector={"matchLabels": {"app": "other"}}),
            ["spec.selector.matchLabels.app"],
        ),
    ],
)
def test_pods_restart_when_their_template_changes(wanted: dict[str, Any], expected: list[str]) -> None:
    live = _deployment({**WEB, "terminationMessagePath": "/dev/termination-log"}, replicas=2)
    assert changed_pod_fields(wanted, live) == expected


def test_labels_of_the_pod_template_are_named() -> None:
    wanted = {"spec": {"template": {"metadata": {"labels": {"app": "web", "tier": "a"}}}}}
    live = {"spec": {"template": {"metadata": {"labels": {"app": "web"}}}}}
    assert changed_pod_fields(wanted, live) == ["spec.template.metadata.labels.tier"]
    assert changed_pod_fields({"data": {"a": "b"}}, {}) == []
