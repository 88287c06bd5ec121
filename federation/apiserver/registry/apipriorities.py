"""The priorities with which kube-apiserver registers its group versions: they order discovery. Pure."""

from typing import Final, NamedTuple

from federation.apimachinery.resources import API_SERVICES


class Priority(NamedTuple):
    """`groupPriorityMinimum` and `versionPriority` of an APIService; higher comes first."""

    group: int
    version: int


CUSTOM: Final = Priority(1000, 100)
"""Of group versions with custom resources."""
_FIRST: Final = Priority(20_000, 1)
BUILTIN: Final = {
    ("", "v1"): Priority(18_000, 1),
    ("apps", "v1"): Priority(17_800, 15),
    ("events.k8s.io", "v1"): Priority(17_750, 15),
    ("authentication.k8s.io", "v1"): Priority(17_700, 15),
    ("authorization.k8s.io", "v1"): Priority(17_600, 15),
    ("autoscaling", "v2"): Priority(17_500, 30),
    ("autoscaling", "v1"): Priority(17_500, 15),
    ("batch", "v1"): Priority(17_400, 15),
    ("certificates.k8s.io", "v1"): Priority(17_300, 15),
    ("networking.k8s.io", "v1"): Priority(17_200, 15),
    ("policy", "v1"): Priority(17_100, 15),
    ("rbac.authorization.k8s.io", "v1"): Priority(17_000, 15),
    ("storage.k8s.io", "v1"): Priority(16_800, 15),
    ("admissionregistration.k8s.io", "v1"): Priority(16_700, 15),
    ("apiextensions.k8s.io", "v1"): Priority(16_700, 15),
    ("scheduling.k8s.io", "v1"): Priority(16_600, 15),
    ("coordination.k8s.io", "v1"): Priority(16_500, 15),
    ("node.k8s.io", "v1"): Priority(16_300, 15),
    ("discovery.k8s.io", "v1"): Priority(16_200, 15),
    ("resource.k8s.io", "v1"): Priority(16_200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1"): Priority(16_100, 21),
}
"""Of built-in group versions. The one of APIServices itself is always first and has no APIService."""


def default_priority(group: str, version: str) -> Priority:
    """Return the priority of a group version that no APIService registers yet."""
    return _FIRST if group == API_SERVICES.group else BUILTIN.get((group, version), CUSTOM)
