"""The parameter `fieldValidation`: unknown and duplicate fields become warnings, or one error. Pure.

`http/decoding.py` finds the duplicate fields of a body, `semantics/schema` the unknown fields. This module puts both
into kube-apiserver's words: one error that lists everything under Strict, one warning each under Warn.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from federation.apimachinery.errors import BadRequest, Invalid, invalid
from federation.apimachinery.fielderrors import invalid as invalid_value
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.schema.defaulting import has_only_known_fields, prune
from federation.apiserver.verbs.patching import STRATEGIC, Patch
from federation.apiserver.verbs.requestoptions import WriteOptions

_YAML = "yaml: unmarshal errors:\n"


def not_handled(info: KindInfo, text: str) -> str:
    """Return the message for an object of a built-in kind that Go cannot decode."""
    resource = info.resource
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {text}'


def to_texts(paths: Iterable[str]) -> list[str]:
    """Return the problems of unknown fields."""
    return [f'unknown field "{path}"' for path in paths]


def report_problems(info: KindInfo | None, problems: Sequence[str], options: WriteOptions) -> None:
    """Add a warning for each problem of a created or replacing object; BadRequest with all of them under Strict.

    `info` is None for virtual objects, such as a Scale.
    """
    if options.field_validation == "Strict":
        listed = _listed(problems)
        raise BadRequest(listed if info is None or info.is_custom else not_handled(info, listed))
    _warn(problems, options)


def report_body_problems(info: KindInfo | None, obj: Object, problems: list[str], options: WriteOptions) -> None:
    """Report the problems that the decoding of a body found, and under Strict also its unknown fields; BadRequest."""
    if options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict" and info is not None:
        unknown = to_texts(prune(info.schema, obj))
        problems = [*problems, *(text for text in unknown if text not in problems)]
    report_problems(info, problems, options)


def check_patched(info: KindInfo, patched: Object, patch: Patch, options: WriteOptions) -> None:
    """Report the problems of a patch's body, and under Strict also the unknown fields of the patched object.

    Under Warn `check_fields` reports unknown fields, as it looks at changed fields only. BadRequest for an apply,
    Invalid for other patches.
    """
    mode, problems = options.field_validation, options.body_problems
    if mode == "Ignore" or (not problems and (mode != "Strict" or patch.is_apply)):
        return
    if mode != "Strict":
        _warn(problems, options)
    elif patch.is_apply:
        raise BadRequest(f"error strict decoding YAML: error converting YAML to JSON: {problems[0]}")
    elif problems or not has_only_known_fields(info.schema, patched):
        raise _refused(info, patched, patch, problems)


def _refused(info: KindInfo, patched: Object, patch: Patch, problems: Sequence[str]) -> Invalid:
    is_strategic = patch.type == STRATEGIC
    shown = _go(patch.body) if is_strategic else orjson.dumps(patched, option=orjson.OPT_SORT_KEYS).decode()
    unknown = to_texts(prune(info.schema, patched, is_sorted=True))
    return invalid("", "", "", [invalid_value("patch", shown, _listed([*problems, *unknown]))])


def _listed(problems: Sequence[str]) -> str:
    return "strict decoding error: " + ", ".join(problems)


def _warn(problems: Sequence[str], options: WriteOptions) -> None:
    for problem in problems:
        lines = problem.removeprefix(_YAML).split("\n") if problem.startswith(_YAML) else [problem]
        options.warnings.extend(line.strip() for line in lines)


def _go(value: Any) -> str:
    """Return a JSON value as Go's `%+v` prints it."""
    match value:
        case dict():
            return "map[" + " ".join(f"{key}:{_go(value[key])}" for key in sorted(value)) + "]"
        case list():
            return "[" + " ".join(map(_go, value)) + "]"
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
    return str(value)
