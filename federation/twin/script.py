"""The script of a rehearsal: what happens when, and what is expected. Pure.

A script is YAML with `end`, `steps` and `expect` (docs/twin.md). Errors name the field, and what it may have.
"""

from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import BadRequest, ConfigurationError
from federation.apimachinery.nearestfile import unreadable
from federation.apimachinery.selectors import parse_label_selector
from federation.apiserver.http.decoding import decode_yaml

_AFTERWARDS_S = 600.0
"""How long a rehearsal goes on after its last step if its script has no `end`."""
_TIMES_MAX = 100_000
_BYTES_MAX = 1 << 20
NUMBERS = (
    "unplacedReplicas",
    "unplacedReplicaMinutes",
    "waitingReplicas",
    "waitingReplicaMinutes",
    "unreachableReplicas",
    "unreachableReplicaMinutes",
    "movedReplicas",
    "holds",
    "rollbacks",
    "costPerHour",
)
"""What an expectation may limit."""


class Fault(StrEnum):
    """What may happen to clusters."""

    CLUSTER_DIES = "clusterDies"
    """Nothing in it answers."""
    REGION_DIES = "regionDies"
    """The same for all clusters of a region."""
    CERTIFICATE_EXPIRES = "certificateExpires"
    """The cluster refuses the credentials of the control plane."""
    SPOT_ENDS = "spotEnds"
    """The nodes of spot capacity disappear, with their pods."""
    NODES_LOST = "nodesLost"
    """So many nodes disappear, with their pods."""
    RECOVERS = "recovers"
    """The cluster answers again. Nodes do not come back."""


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A workload and its new number of replicas."""

    kind: str
    name: str
    replicas: int
    namespace: str = "default"
    api_version: str = msgspec.field(default="apps/v1", name="apiVersion")


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exactly one of `fault`, `cordon`, `uncordon`, `apply`, `delete` and `scale`, at a time."""

    at: str
    fault: str = ""
    cluster: str = ""
    region: str = ""
    selector: str = ""
    nodes: int = 0
    """Of `nodesLost`."""
    cordon: str = ""
    uncordon: str = ""
    apply: str = ""
    """A file of manifests, relative to the script."""
    times: int = 1
    """Of `apply`: so many copies, with numbers behind their names if it is not 1."""
    every: str = "1s"
    """Of `apply`: the time between two copies."""
    delete: str = ""
    scale: Scale | None = None

    @property
    def at_s(self) -> float:
        """The time from the beginning, in seconds."""
        return parse_duration(self.at)

    def __str__(self) -> str:
        where = self.cluster or self.region or self.selector or "all clusters"
        if self.fault:
            return f"{self.fault}: {where}" + (f", {self.nodes} nodes" if self.nodes else "")
        if self.scale is not None:
            return f"scale {self.scale.kind} {self.scale.name} to {self.scale.replicas}"
        for verb in ("cordon", "uncordon", "apply", "delete"):
            if value := getattr(self, verb):
                return f"{verb} {value}" + (f", {self.times} times" if self.times != 1 else "")
        return "nothing"


class Expectation(msgspec.Struct, frozen=True):
    """The most that a number may be at a time; `number` is one of `NUMBERS`."""

    at_s: float
    """From the beginning; infinite for the end."""
    number: str
    most: float


class Script(msgspec.Struct, frozen=True):
    """A script that was read: its steps in the order of their times."""

    end_s: float
    steps: tuple[Step, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    folder: Path = Path()
    """Where the files of its steps are."""
    has_end: bool = False
    """Whether somebody said when it ends."""

    def reaching(self, last_s: float) -> "Script":
        """Return the script with an end after this time, unless somebody said when it ends."""
        end_s = self.end_s if self.has_end else max(self.end_s, last_s + _AFTERWARDS_S)
        return structs.replace(self, end_s=end_s)


class _Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    end: str = ""
    steps: list[Step] = []
    expect: list[dict[str, Any]] = []


def read_script(file: Path, *, end: str = "") -> Script:
    """Return the script in a file; ConfigurationError names the field that is wrong."""
    try:
        if file.stat().st_size > _BYTES_MAX:
            raise ConfigurationError(f"{file}: larger than {_BYTES_MAX >> 20} MiB; it is no script")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: {unreadable(file, error)}") from error
    try:
        value, duplicates = decode_yaml(text.encode())
        if duplicates:
            raise ConfigurationError("; ".join(duplicates))
        return parse_script(value or {}, file.parent, end=end)
    except (ConfigurationError, BadRequest) as error:
        raise ConfigurationError(f"{file}: {error}") from None


def parse_script(source: Any, folder: Path, *, end: str = "") -> Script:
    """Return the script in a parsed document; ConfigurationError names the field that is wrong."""
    try:
        found = msgspec.convert(source, _Source)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"not a script: {error}; see docs/twin.md for its fields") from None
    for number, step in enumerate(found.steps):
        _check(step, f"steps[{number}]")
    steps = tuple(sorted(found.steps, key=lambda step: step.at_s))
    last_s = max((_last_s(step) for step in steps), default=0.0)
    end_s = _duration(end or found.end, "end") if end or found.end else last_s + _AFTERWARDS_S
    if end_s < last_s:
        raise ConfigurationError(f"end: {end or found.end} is before the last step, at {last_s:g}s")
    expectations = tuple(
        each for number, entry in enumerate(found.expect) for each in _expectations(entry, f"expect[{number}]", end_s)
    )
    return Script(end_s, steps, expectations, folder, bool(end or found.end))


def _check(step: Step, field: str) -> None:
    _duration(step.at, f"{field}.at")
    verbs = [verb for verb in ("fault", "cordon", "uncordon", "apply", "delete", "scale") if getattr(step, verb)]
    if len(verbs) != 1:
        raise ConfigurationError(f"{field}: give exactly one of fault, cordon, uncordon, apply, delete and scale")
    if step.fault and step.fault not in list(Fault):
        raise ConfigurationError(f"{field}.fault: {step.fault!r}: it must be one of {', '.join(Fault)}")
    _check_target(step, field)
    if not 1 <= step.times <= _TIMES_MAX or (step.times != 1 and not step.apply):
        raise ConfigurationError(f"{field}.times: a number from 1 to {_TIMES_MAX}, with apply")
    _duration(step.every, f"{field}.every")
    if step.scale is not None and step.scale.replicas < 0:
        raise ConfigurationError(f"{field}.scale.replicas: it must not be negative")


def _check_target(step: Step, field: str) -> None:
    targets = [name for name in ("cluster", "region", "selector") if getattr(step, name)]
    if targets and not step.fault:
        raise ConfigurationError(f"{field}.{targets[0]}: only a fault has it")
    if len(targets) > 1:
        raise ConfigurationError(f"{field}: give one of cluster, region and selector")
    if step.fault and not targets and step.fault != Fault.SPOT_ENDS:
        raise ConfigurationError(f"{field}: {step.fault} needs cluster, region or selector")
    if step.fault == Fault.REGION_DIES and not step.region:
        raise ConfigurationError(f"{field}.region: regionDies needs it")
    if (step.fault == Fault.NODES_LOST) != (step.nodes > 0):
        raise ConfigurationError(f"{field}.nodes: nodesLost needs a number above 0, and nothing else has it")
    if step.selector:
        try:
            parse_label_selector(step.selector)
        except BadRequest as error:
            raise ConfigurationError(f"{field}.selector: {error}") from None


def _expectations(entry: dict[str, Any], field: str, end_s: float) -> list[Expectation]:
    at_s = _duration(entry["at"], f"{field}.at") if "at" in entry else float("inf")
    if end_s < at_s < float("inf"):
        raise ConfigurationError(f"{field}.at: {entry['at']} is after the end, {end_s:g}s")
    found = []
    for number, most in entry.items():
        if number == "at":
            continue
        if number not in NUMBERS:
            raise ConfigurationError(f"{field}.{number}: it must be one of {', '.join(NUMBERS)}")
        if isinstance(most, bool) or not isinstance(most, (int, float)):
            raise ConfigurationError(f"{field}.{number}: it must be a number, the most that is expected")
        found.append(Expectation(at_s, number, float(most)))
    if not found:
        raise ConfigurationError(f"{field}: give one of {', '.join(NUMBERS)}")
    return found


def _last_s(step: Step) -> float:
    return step.at_s + (step.times - 1) * parse_duration(step.every)


def _duration(text: Any, field: str) -> float:
    try:
        seconds = parse_duration(str(text))
    except ValueError as error:
        raise ConfigurationError(f"{field}: {error}") from None
    if seconds < 0:
        raise ConfigurationError(f"{field}: {text!r} is negative; times count from the beginning")
    return seconds
