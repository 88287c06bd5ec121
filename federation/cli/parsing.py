"""A quick way to the values of a command line.

typer imports pydantic to check the first value, which takes longer than most commands. Plain values are converted here,
and everything else, with every error, is left to typer: what is accepted stays the same.
"""

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

_UNSURE: Any = object()
"""For a value that typer has to convert or to refuse."""
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


def quicken(command: Any) -> Any:
    """Return the command after a change: plain values are converted here, also those of the commands below it."""
    find, look_up = command.get_params, getattr(command, "get_command", None)
    command.get_params = lambda context: list(map(_convert_plainly, find(context)))
    if look_up is not None:
        command.get_command = lambda context, name: (
            None if (found := look_up(context, name)) is None else quicken(found)
        )
    return command


def _convert_plainly(parameter: Any) -> Any:
    if hasattr(parameter, "type_descriptor") and "process_value" not in vars(parameter):
        parameter.process_value = partial(_process, parameter, parameter.process_value)
    return parameter


def _process(parameter: Any, check: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """Return the parameter's value, as `process_value` of typer, which is `check`."""
    described = parameter.type_descriptor
    converted = _convert_all(described.annotation, described.parameter_info, value)
    if converted is _UNSURE or (parameter.required and converted in (None, (), [])):
        return check(context, value)
    return converted if parameter.callback is None else parameter.callback(context, parameter, converted)


def _convert_all(annotation: Any, info: Any, value: Any) -> Any:
    """Return the value or the values of a list, converted."""
    is_list = get_origin(annotation) is list
    if value is None:
        return () if is_list else None
    if not is_list:
        return _convert(annotation, info, value)
    if not isinstance(value, list | tuple):
        return _UNSURE
    values = [_convert(get_args(annotation)[0], info, each) for each in value]
    return _UNSURE if _UNSURE in values else values


def _convert(annotation: Any, info: Any, value: Any) -> Any:
    if not isinstance(value, str) or not value.isascii():
        return _convert_default(annotation, info, value)
    if info.parser is not None:
        try:
            return info.parser(value)
        except (ValueError, typer.BadParameter):
            return _UNSURE
    if annotation is str:
        return value
    if annotation is Path:
        return _to_path(info, value)
    if get_origin(annotation) is Literal:
        return value if value in get_args(annotation) else _UNSURE
    if annotation in (int, float) and (match := _NUMBER.fullmatch(value)) and (annotation is float or not match[1]):
        return _in_range(info, annotation(value))
    return _UNSURE


def _convert_default(annotation: Any, info: Any, value: Any) -> Any:
    if annotation is float and type(value) is int:
        return _in_range(info, float(value))
    if annotation in (int, float) and type(value) is annotation:
        return _in_range(info, value)
    return _UNSURE


def _in_range(info: Any, value: float) -> Any:
    is_low, is_high = info.min is not None and value < info.min, info.max is not None and value > info.max
    return _UNSURE if is_low or is_high else value


def _to_path(info: Any, value: str) -> Any:
    """Return the path if typer would not refuse it."""
    if info.exists or info.resolve_path or info.allow_dash or info.writable or not (info.file_okay and info.dir_okay):
        return _UNSURE
    path = Path(value)
    return path if not path.exists() or os.access(path, os.R_OK) else _UNSURE
