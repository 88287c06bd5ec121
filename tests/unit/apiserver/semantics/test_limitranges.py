"""LimitRange rules: defaults of containers and of the kind itself, and the texts of refusals, as in Kubernetes."""

from typing import Any

import pytest

from federation.apimachinery.wellknown import LIMIT_RANGER
from federation.apiserver.semantics.quota.limitranges import (
    apply_defaults,
    claim_violations,
    complete_entry,
    parse_limit_range,
    pod_violations,
)
from federation.apiserver.semantics.strategies.limits import LimitRangeStrategy

Object = dict[str, Any]


def a_limit_range(**entry: Any) -> Object:
    return {"metadata": {"name": "l", "namespace": "a"}, "spec": {"limits": [entry]}}


def a_pod(requests: Object | None = None, limits: Object | None = None, **spec: Any) -> Object:
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "resources": resources}], **spec}}


def test_containers_get_what_they_do_not_specify() -> None:
    limit_range = a_limit_range(type="Container", default={"cpu": "1", "memory": "1Gi"}, defaultRequest={"cpu": "100m"})
    pod = a_pod({"memory": "64Mi"}, {"memory": "128Mi"}, initContainers=[{"name": "init"}])
    apply_defaults(pod, parse_limit_range(limit_range))
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources == {
        "requests": {"memory": "64Mi", "cpu": "100m"},
        "limits": {"memory": "128Mi", "cpu": "1"},
    }
    assert pod["spec"]["initContainers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    assert pod["metadata"]["annotations"][LIMIT_RANGER] == (
        "LimitRanger plugin set: cpu request for container main; cpu limit for container main;"
        " cpu request for init container init; cpu, memory limit for init container init"
    )


def test_a_pod_that_specifies_everything_is_not_changed() -> None:
    pod = a_pod({"cpu": "1"}, {"cpu": "1"})
    before = {**pod}
    apply_defaults(pod, parse_limit_range(a_limit_range(type="Container", default={"cpu": "2"})))
    assert pod["metadata"] == before["metadata"]


@pytest.mark.parametrize(
    ("entry", "pod", "text"),
    [
        (
            {"type": "Container", "min": {"cpu": "1"}},
            a_pod(),
            "minimum cpu usage per Container is 1.  No request is specified",
        ),
        (
            {"type": "Container", "min": {"cpu": "1"}},
            a_pod({"cpu": "500m"}),
            "minimum cpu usage per Container is 1, but request is 500m",
        ),
        (
            {"type": "Container", "min": {"cpu": "1"}},
            a_pod({"cpu": "1"}, {"cpu": "0.5"}),
            "minimum cpu usage per Container is 1, but limit is 500m",
        ),
        (
            {"type": "Container", "max": {"memory": "1Gi"}},
            a_pod(),
            "maximum memory usage per Container is 1Gi.  No limit is specified",
        ),
        (
            {"type": "Container", "max": {"memory": "1Gi"}},
            a_pod({}, {"memory": "2Gi"}),
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
        (
            {"type": "Container", "max": {"memory": "1Gi"}},
            a_pod({"memory": "2Gi"}, {"memory": "1Gi"}),
            "maximum memory usage per Container is 1Gi, but request is 2Gi",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            a_pod({"cpu": "100m"}, {"cpu": "1"}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 10.000000",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            a_pod({"cpu": "0"}, {"cpu": "1"}),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            a_pod({"cpu": "1"}),
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
        (
            {"type": "Pod", "max": {"cpu": "2"}},
            a_pod({}, {"cpu": "1"}, initContainers=[{"name": "i", "resources": {"limits": {"cpu": "3"}}}]),
            "maximum cpu usage per Pod is 2, but limit is 3",
        ),
    ],
)
def test_a_pod_outside_of_its_limits_is_refused_with_the_texts_of_kubernetes(
    entry: Object, pod: Object, text: str
) -> None:
    assert list(pod_violations(pod, parse_limit_range(a_limit_range(**entry)))) == [text]


def test_a_pod_within_its_limits_is_accepted() -> None:
    entry = {"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "2"}}
    assert not list(pod_violations(a_pod({"cpu": "1"}, {"cpu": "2"}), parse_limit_range(a_limit_range(**entry))))


@pytest.mark.parametrize(
    ("requests", "texts"),
    [
        ({"storage": "5Gi"}, []),
        ({"storage": "1"}, ["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1"]),
        ({"storage": "11Gi"}, ["maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi"]),
        (
            {},
            [
                "minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified",
                "maximum storage usage per PersistentVolumeClaim is 10Gi.  No request is specified",
            ],
        ),
    ],
)
def test_only_the_requests_of_a_claim_count(requests: Object, texts: list[str]) -> None:
    entry = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}}
    claim = {"spec": {"resources": {"requests": requests, "limits": {"storage": "99Gi"}}}}
    assert list(claim_violations(claim, parse_limit_range(a_limit_range(**entry)))) == texts


def test_defaults_follow_from_max_and_min() -> None:
    entry: Object = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}, "default": {"gpu": "1"}}
    complete_entry(entry)
    assert entry["default"] == {"cpu": "2", "gpu": "1"}
    assert entry["defaultRequest"] == {"memory": "1Mi", "cpu": "2", "gpu": "1"}


@pytest.mark.parametrize(
    ("entry", "field", "text"),
    [
        ({}, "spec.limits[0].type", "Required value"),
        ({"type": "Pod", "default": {"cpu": "1"}}, "spec.limits[0].default", "when `type` is 'Pod'"),
        ({"type": "PersistentVolumeClaim"}, "spec.limits[0].limits", "either minimum or maximum storage value"),
        ({"type": "Pod", "min": {"cpu": "x"}}, "spec.limits[0].min[cpu]", "quantities must match"),
        (
            {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
            "spec.limits[0].min[cpu]",
            "min value 2 is greater than max value 1",
        ),
        (
            {"type": "Container", "default": {"cpu": "3"}, "max": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
            "spec.limits[0].default[cpu]",
            "default value 3 is greater than max value 2",
        ),
        (
            {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}},
            "spec.limits[0].defaultRequest[cpu]",
            "default request value 2 is greater than default limit value 1",
        ),
        (
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "0.5"}},
            "spec.limits[0].maxLimitRequestRatio[cpu]",
            "ratio 500m is less than 1",
        ),
        (
            {"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}},
            "spec.limits[0].maxLimitRequestRatio[cpu]",
            "ratio 3 is greater than max/min = 2.000000",
        ),
    ],
)
def test_limits_that_contradict_each_other_are_refused(entry: Object, field: str, text: str) -> None:
    causes = LimitRangeStrategy().validate(a_limit_range(**entry))
    assert [cause["field"] for cause in causes] == [field]
    assert text in causes[0]["message"]


def test_two_entries_of_one_type_are_refused() -> None:
    limit_range = a_limit_range(type="Pod")
    limit_range["spec"]["limits"] *= 2
    assert [cause["reason"] for cause in LimitRangeStrategy().validate(limit_range)] == ["FieldValueDuplicate"]
