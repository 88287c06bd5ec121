"""DeleteOptions as they come over the wire, in the body of a DELETE or inside an Eviction, to the registry's own. Pure.

What is of the wrong type is a 400, what no option knows a 422, in Kubernetes' words. Query parameters become such a
mapping first (`server/parameters.py`).
"""

from collections.abc import Mapping
from typing import Any

from federation.base import errors
from federation.base.errors import BadRequest
from federation.registry.options import DeleteOptions, Requester

_PROPAGATION_POLICIES = ("Foreground", "Background", "Orphan")


def read_delete_options(
    given: Mapping[str, Any],
    warnings: list[str] | None = None,
    user: Requester | None = None,
    annotations: dict[str, str] | None = None,
) -> DeleteOptions:
    """Return what a DeleteOptions object says; BadRequest, Invalid."""
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
    causes = [cause for entry in dry_run or () for cause in check_dry_run(entry)]
    if policy and policy not in _PROPAGATION_POLICIES:
        causes.append(unsupported("propagationPolicy", policy, (*_PROPAGATION_POLICIES, "nil")))
    if policy and orphan is not None:
        causes.append(
            errors.cause(
                "FieldValueInvalid",
                f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set',
                "propagationPolicy",
            )
        )
    if causes:
        raise errors.invalid("DeleteOptions", "meta.k8s.io", "", causes)
    return DeleteOptions(
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


def check_dry_run(value: Any) -> list[dict[str, str]]:
    """Return the causes why a `dryRun` entry is refused: there is only "All"."""
    return [] if value in ("", "All") else [unsupported("dryRun", str(value), ("All",))]


def unsupported(field: str, value: str, supported: tuple[str, ...]) -> dict[str, str]:
    """Return the cause of a value that is none of the supported ones."""
    listed = ", ".join(f'"{entry}"' for entry in supported)
    return errors.cause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}', field)
