"""A group of commands from a table: a command's module is imported when the command runs or its help is asked for.

Names and first sentences are in the table, so listing, completing and misspelling commands import none of them.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

Entry = tuple[str, str]
"""The module of a command and the first sentence of its help; no module for the command of a leaf feature."""


class CommandTable(TyperGroup):
    """Lists commands under headings, and loads a command when it is needed."""

    sections: ClassVar[Mapping[str, Mapping[str, Entry]]] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._table = {name: entry for listed in self.sections.values() for name, entry in listed.items()}
        self.commands = {name: TyperCommand(name, help=text) for name, (_, text) in self._table.items()}
        self._loaded: dict[str, Any] = {}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # typer calls it so
        """Return the command with its options, None for an unknown one."""
        if cmd_name in self._table and cmd_name not in self._loaded:
            self._loaded[cmd_name] = _build(cmd_name, _load(cmd_name, self._table[cmd_name][0]))
        return self._loaded.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # typer calls it so
        """Write the sections of the help text."""
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, listed in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(width)) for name in listed])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the commands and options that begin so, without loading a command."""
        ctx.command = TyperGroup(name=self.name, commands=dict(self.commands), params=self.params)
        return list(ctx.command.shell_complete(ctx, incomplete))


def _load(name: str, module: str) -> Any:
    """Import a command, or a group of commands."""
    if module:
        return getattr(import_module(module), f"{name.replace('-', '_')}_command")
    from federation.features.catalogue import FEATURES  # noqa: PLC0415  # few commands need it

    return next(feature.commands[name]() for feature in FEATURES if name in feature.commands)


def _build(name: str, loaded: Any) -> Any:
    """Return what typer makes of a command."""
    around = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    if not isinstance(loaded, typer.Typer):
        around.command(name)(loaded)
        return get_command(around)
    around.add_typer(loaded, name=name)
    return cast("TyperGroup", get_command(around)).commands[name]
