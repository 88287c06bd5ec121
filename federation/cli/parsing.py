"""The parser of one command line: typer's, without what this command line does not need.

typer reads the signatures of all commands before it looks at a word, and imports pydantic to check the first value, so
that parsing took longer than most commands. `to_command` builds only the command that the first word names. Plain
values are converted here, and everything else, with every error, is left to typer: what is accepted stays the same.
"""

import copy
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from typer.main import get_command
from typer.models import CommandInfo

_UNSURE: Any = object()
"""For a value that typer has to convert or to refuse."""
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


def to_command(app: typer.Typer, words: Sequence[str]) -> Callable[..., Any]:
    """Return the app as a command that understands these words, and all of them if the first one names no command."""
    first = words[0] if words else ""
    narrow = copy.copy(app)
    narrow.registered_commands = [each for each in app.registered_commands if _name_of(each) == first]
    narrow.registered_groups = [each for each in app.registered_groups if each.name == first]
    command = get_command(narrow if narrow.registered_commands or narrow.registered_groups else app)
    _convert_plain_values(command)
    return command


def _name_of(command: CommandInfo) -> str:
    return command.name or str(getattr(command.callback, "__name__", ""))


def _convert_plain_values(command: Any) -> None:
    """Convert plain values of the command and of those below it here."""
    find = command.get_params
    command.get_params = lambda context: list(map(_convert_plainly, find(context)))
    for each in getattr(command, "commands", {}).values():
        _convert_plain_values(each)


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
