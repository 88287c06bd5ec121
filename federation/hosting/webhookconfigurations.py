"""The webhook configurations that connect an existing API server with our admission. Pure.

| webhook | concerns | when this process does not answer |
|---|---|---|
| hold | creation of objects of federated kinds: our finalizer | the write is admitted; federate adds it |
| mutate, validate | writes of our kinds: defaults, validation, rules for tenants | the write is refused |
| validate of autoscalers | warnings only | the write is admitted |

Our own writes are not sent, nor are those of Kubernetes' garbage collector and namespace controller: they must be able
to clean up while we do not run.
"""

from collections.abc import Callable, Iterable

from federation.api import names
from federation.api.kubefedkinds import SCHEDULING_GROUP, TYPES_GROUP
from federation.api.resources import CORE_GROUP, KRUISE_GROUP
from federation.apimachinery.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Object, Resource
from federation.hosting.manifests import LABELS, USER

HOLD, MUTATE, VALIDATE = "/admission/hold", "/admission/mutate", "/admission/validate"
PATHS = frozenset((HOLD, MUTATE, VALIDATE))
_TIMEOUT_S = 10
_HOLD_TIMEOUT_S = 2
_EXEMPT = (
    USER,
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
)
_OURS = frozenset((CORE_GROUP, KRUISE_GROUP, SCHEDULING_GROUP, TYPES_GROUP))

ClientConfig = Callable[[str], Object]
"""Returns the clientConfig of a webhook for a path."""


def is_exempt(user: object) -> bool:
    """Return whether the writes of the user are not reviewed."""
    return user in _EXEMPT


def to_configurations(
    protected: Iterable[str], held: Iterable[Resource], client_config: ClientConfig
) -> tuple[Object, Object]:
    """Return the mutating and the validating configuration.

    `protected` are the resources of the admission plugins (`plural.group`), `held` the federated kinds.
    """
    ours, others = _split(protected)
    mutating = [
        _webhook(
            "hold", HOLD, [_rule(each.group, [each.plural], ["CREATE"]) for each in held], client_config, "Ignore"
        ),
        _webhook("mutate", MUTATE, _rules(ours), client_config, "Fail"),
    ]
    validating = [
        _webhook("validate", VALIDATE, _rules(ours), client_config, "Fail"),
        _webhook("warn", VALIDATE, _rules(others), client_config, "Ignore"),
    ]
    return (
        _configuration(MUTATING_WEBHOOKS, [each for each in mutating if each["rules"]]),
        _configuration(VALIDATING_WEBHOOKS, [each for each in validating if each["rules"]]),
    )


def _split(protected: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the plurals of our groups and those of others, by group."""
    ours: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for name in sorted(protected):
        plural, _, group = name.partition(".")
        (ours if group in _OURS else others).setdefault(group, []).append(plural)
    return ours, others


def _rules(plurals: dict[str, list[str]]) -> list[Object]:
    return [
        _rule(group, [name for plural in found for name in (plural, f"{plural}/*")], ["CREATE", "UPDATE"])
        for group, found in sorted(plurals.items())
    ]


def _rule(group: str, resources: list[str], operations: list[str]) -> Object:
    return {"operations": operations, "apiGroups": [group], "apiVersions": ["*"], "resources": resources, "scope": "*"}


def _webhook(name: str, path: str, rules: list[Object], client_config: ClientConfig, failure: str) -> Object:
    users = ", ".join(f"'{user}'" for user in _EXEMPT)
    return {
        "name": f"{name}.{names.HOST_WEBHOOKS}",
        "clientConfig": client_config(path),
        "rules": rules,
        "matchConditions": [{"name": "is-of-a-user", "expression": f"!(request.userInfo.username in [{users}])"}],
        "failurePolicy": failure,
        "sideEffects": "None",
        "timeoutSeconds": _HOLD_TIMEOUT_S if path == HOLD else _TIMEOUT_S,
        "admissionReviewVersions": ["v1"],
    }


def _configuration(resource: Resource, webhooks: list[Object]) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": names.HOST_WEBHOOKS, "labels": dict(LABELS)},
        "webhooks": webhooks,
    }
