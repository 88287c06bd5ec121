"""A policy with two versions: each object has one of them, for the scheduler and for overrides alike."""

from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import Object
from federation.planning.overrides.policymatching import Bindings, subject_of_federated
from federation.planning.waves.policychanges import ALL_BELOW, FIELD, content_of
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import PolicyRef, compile_policy

APPS = {"apiVersion": "apps/v1", "kind": "Deployment"}
NOW, LATER = "2026-03-01T12:00:00Z", "2026-03-01T12:00:30Z"


def a_federated(name: str = "web", created: str = NOW, **labels: str) -> Object:
    template = {**APPS, "metadata": {"name": name, "namespace": "shop", "labels": {"app": name}}}
    metadata = {"name": f"{name}-deployments.apps", "namespace": "shop", "labels": labels, "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"template": template}}


def a_policy(kind: str, waves: Any, *, selects: str = "", before: str = "", state: str = "Progressing") -> Object:
    """Return a policy whose present version selects objects of a label, and whose earlier one those of another."""

    def spec(label: str, version: int) -> Object:
        selector = {**APPS, "labelSelector": {"matchLabels": {"app": label}}} if label else APPS
        rules = [{"overriders": {"jsonpatch": [{"path": "/x", "value": version}]}}]
        own = {"schedulingMode": "Divide", "maxClusters": version} if kind == "PropagationPolicy" else {}
        return {"resourceSelectors": [selector], **(own or {"overrideRules": rules})}

    policy = {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": "p", "namespace": "shop"},
        "spec": spec(selects, 2),
    }
    policy["spec"][FIELD] = {"waves": [{"name": "few"}]}
    record = {"revision": 3, "state": state, "earlier": {"spec": spec(before, 1)}, "begunAt": NOW, "waves": waves}
    policy["status"] = {FIELD: {**record, "content": content_of(policy)}}
    return policy


NOBODY = [{"name": "few"}, {"name": "remaining"}]
FEW = [{"name": "few", "bound": "f" * 16}, {"name": "remaining"}]
FEW_DONE = [{"name": "few", "bound": "0", "isDone": True}, {"name": "remaining"}]
ALL = [*FEW[:1], {"name": "remaining", "bound": ALL_BELOW}]
BY_LABEL = {names.PROPAGATION_POLICY_LABEL: "p", names.OVERRIDE_POLICY_LABEL: "p"}


@pytest.mark.parametrize(
    ("policy", "federated", "version"),
    [
        ({"waves": NOBODY}, a_federated(), 1),
        ({"waves": FEW}, a_federated(), 2),
        ({"waves": FEW}, a_federated(**BY_LABEL), 2),
        ({"waves": NOBODY}, a_federated(**BY_LABEL), 1),
        ({"waves": FEW, "state": "RollingBack"}, a_federated(), 1),
        ({"waves": FEW, "state": "RolledBack"}, a_federated(**BY_LABEL), 1),
        ({"waves": NOBODY, "state": "Complete"}, a_federated(), 2),
        ({"waves": FEW}, a_federated(created=LATER), 1),
        ({"waves": FEW_DONE}, a_federated(created=LATER), 2),
        ({"waves": FEW_DONE}, a_federated(), 1),
        ({"waves": FEW, "selects": "web", "before": "other"}, a_federated(), None),
        ({"waves": ALL, "selects": "web", "before": "other"}, a_federated(), 2),
        ({"waves": NOBODY, "selects": "other", "before": "web"}, a_federated(), 1),
        ({"waves": FEW, "selects": "other", "before": "web"}, a_federated(), None),
    ],
)
def test_an_object_has_the_version_of_its_wave(policy: Any, federated: Object, version: int | None) -> None:
    index, bindings = PolicyIndex(), Bindings()
    index.put(compile_policy(a_policy("PropagationPolicy", **policy)))
    found = index.policy_of(federated)
    assert (found and found.max_clusters) == version
    assert (index.match(federated) is None) == (version is None)
    bindings.put(a_policy("OverridePolicy", **policy))
    overriding = bindings.resolve(subject_of_federated(federated))
    assert [each.rules[0].overriders["jsonpatch"][0]["value"] for each in overriding] == [version] * bool(version)


def test_a_spec_that_the_record_is_not_about_applies_to_no_object() -> None:
    policy = a_policy("PropagationPolicy", ALL, state="Complete")
    policy["spec"]["maxClusters"] = 7
    index = PolicyIndex()
    index.put(compile_policy(policy))
    found = index.policy_of(a_federated())
    assert found is not None
    assert (found.max_clusters, found.version) == (1, "before change 4")
    del policy["spec"][FIELD]
    index.put(compile_policy(policy))
    found = index.policy_of(a_federated())
    assert found is not None
    assert found.max_clusters == 7
    index.remove(PolicyRef("shop", "p"))
    assert index.policy_of(a_federated()) is None
