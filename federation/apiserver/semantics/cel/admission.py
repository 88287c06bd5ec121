"""The CEL environment of admission expressions: their variables and the fields of the typed ones. Pure.

`request` and `namespaceObject` are typed, so an unknown field fails when the expression is compiled. Objects and
parameters are untyped.
"""

from collections.abc import Mapping

from federation.apiserver.semantics.cel.composition import Environment, Fields

_VARIABLES = ("object", "oldObject", "request", "namespaceObject")


def _fields(names: str, **nested: Fields) -> Fields:
    return {**dict.fromkeys(names.split()), **nested}


_KIND, _RESOURCE = _fields("group version kind"), _fields("group version resource")
_TYPED: Mapping[str, Fields] = {
    "request": _fields(
        "subResource requestSubResource name namespace operation dryRun options",
        kind=_KIND,
        resource=_RESOURCE,
        requestKind=_KIND,
        requestResource=_RESOURCE,
        userInfo=_fields("username uid groups extra"),
    ),
    "namespaceObject": _fields(
        "",
        metadata=_fields(
            "name generateName namespace labels annotations UID creationTimestamp deletionGracePeriodSeconds"
            " deletionTimestamp generation resourceVersion finalizers"
        ),
        spec=_fields("finalizers"),
        status=_fields("conditions phase"),
    ),
}


def environment(*, has_params: bool = False, has_authorizer: bool = True, is_new: bool = False) -> Environment:
    """Return the environment of a policy before its own variables are added; `is_new` if it is being written."""
    names = (*_VARIABLES, *(("params",) if has_params else ()), *(("authorizer",) if has_authorizer else ()))
    return Environment(names, _TYPED, is_new=is_new)
