"""Parsing and validation of DeleteOptions, from the body of a DELETE or an Eviction. Pure.

A wrong type is a 400, an unsupported value a 422. Query parameters are made such a mapping first
(`apiserver/http/parameters.py`).
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery import errors
from federation.apimachinery.errors import BadRequest
from federation.apimachinery.fielderrors import Causes, show
from federation.apimachinery.fielderrors import invalid as invalid_field
from federation.apiserver.verbs.requestoptions import DeleteOptions, Requester

_PROPAGATION_POLICIES = ("Foreground", "Background", "Orphan")


def read_delete_options(
    given: Mapping[str, Any],
    warnings: list[str] | None = None,
    user: Requester | None = None,
    annotations: dict[str, str] | None = None,
) -> DeleteOptions:
    """Parse and validate a DeleteOptions object; BadRequest, Invalid."""
    policy, orphan = given.get("propagationPolicy") or "", given.get("orphanDependents")
    grace, preconditions = given.get("gracePeriodSeconds"), given.get("preconditions")
    dry_run = given.get("dryRun")
    if not isinstance(policy, str) or not isinstance(orphan, (bool, type(None))):
        raise BadRequest("DeleteOptions: propagationPolicy must be a string and orphanDependents a boolean")
    if isinstance(grace, bool) or not isinstance(grace, (int, type(None))):
        raise BadRequest("DeleteOptions: gracePeriodSeconds must be an integer")
    if not isinstance(preconditions, (dict, type(None))) or not isinstance(dry_run, (list, type(None))):
        raise BadRequest("DeleteOptions: preconditions must be an object and dryRun a list")
    uid, resource_version = (preconditions or {}).get("uid") or "", (preconditions or {}).get("resourceVersion") or ""
    if not isinstance(uid, str) or not isinstance(resource_version, str):
        raise BadRequest("DeleteOptions: preconditions must be strings")
    options = DeleteOptions(
        policy,
        grace,
        uid,
        resource_version,
        bool(dry_run),
        orphan,
        [] if warnings is None else warnings,
        user,
        {} if annotations is None else annotations,
    )
    causes = check_dry_run(dry_run or [])
    if given.get("propagationPolicy") == "":
        causes.append(unsupported("propagationPolicy", "", (*_PROPAGATION_POLICIES, "nil")))
    validate_delete_options(options, causes)
    return options


def validate_delete_options(options: DeleteOptions, causes: Causes | None = None) -> None:
    """Raise Invalid for propagation fields that are unsupported or exclude each other, and for `causes`."""
    policy, causes = options.propagation_policy, causes or []
    if policy and policy not in _PROPAGATION_POLICIES:
        causes.append(unsupported("propagationPolicy", policy, (*_PROPAGATION_POLICIES, "nil")))
    if policy and options.orphan_dependents is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(invalid_field("propagationPolicy", policy, text))
    if causes:
        raise errors.invalid("DeleteOptions", "meta.k8s.io", "", causes)


def check_dry_run(values: list[Any]) -> Causes:
    """Return the causes against the values of `dryRun`; only "All" is allowed."""
    if all(value == "All" for value in values):
        return []
    text = f'Unsupported value: {show(values)}: supported values: "All"'
    return [errors.cause("FieldValueNotSupported", text, "dryRun")]


def unsupported(field: str, value: str, supported: tuple[str, ...]) -> dict[str, str]:
    """Return the cause for a value outside the supported ones."""
    listed = ", ".join(f'"{entry}"' for entry in supported)
    return errors.cause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}', field)
