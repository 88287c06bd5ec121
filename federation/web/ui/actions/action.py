"""The definition of an action: one row of a table. All actions have the same screen, `../actionscreen.py`.

A row says when the action makes sense, which fields its form has, and which write it is. The screen does the rest: it
shows what the write would do, asks, and sends it with the rights of the user. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object, Resource
from federation.plans.edits import Edit, Verb

Form = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an action is about, as it is now.

    `now` is when the user asked, the same for the plan and for its application. `is_divided` means that clusters share
    its replicas; `move` is its last move, None without one.
    """

    resource: Resource
    obj: Object
    now: datetime
    is_divided: bool = False
    move: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self.obj["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace of the object, "" without one."""
        return str(self.obj["metadata"].get("namespace") or "")

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec, {} without one."""
        found = self.obj.get("spec")
        return found if isinstance(found, Mapping) else {}

    @property
    def key(self) -> tuple[str, str]:
        """Group and kind."""
        return self.resource.group, str(self.obj["kind"])

    def merge(self, body: Object) -> Edit:
        """Return the write of a merge patch."""
        return Edit("Change", Verb.MERGE, self.resource, self.namespace, self.name, body)

    def delete(self) -> Edit:
        """Return the deletion."""
        return Edit("Deletion", Verb.DELETE, self.resource, self.namespace, self.name, {})


@dataclass(frozen=True, slots=True)
class Field:
    """An input of a form. `kind` is "number", "text", "hidden", "lines" or "yaml"."""

    name: str
    label: str
    kind: str
    value: str = ""
    hint: str = ""


def _no_fields(_: Subject) -> Sequence[Field]:
    return ()


@dataclass(frozen=True, slots=True)
class Action:
    """One row. `title` is on the button that opens the form, `button` on the one that does it."""

    name: str
    title: str
    button: str
    applies: Callable[[Subject], bool]
    to_edit: Callable[[Subject, Form], Edit]
    """The write; ConfigurationError names the field that is wrong."""
    text: Callable[[Subject], str]
    """The effect of the action, in a sentence that is right before the plan is known."""
    fields: Callable[[Subject], Sequence[Field]] = _no_fields
    verb: str = "patch"
    """The verb that the user must be allowed on the object."""
    is_final: bool = False
    """Nobody can take it back."""
    is_planned: bool = True
    """Whether a plan can tell what it does."""


def required(form: Form, name: str, label: str) -> str:
    """Return a field of a form; ConfigurationError when it is empty."""
    value = form.get(name, "").strip()
    if not value:
        raise ConfigurationError(f"{label}: enter a value")
    return value
