"""Actions on objects of users, one row each: scale, restart, pause, move, rebalance, undo, labels, YAML, delete."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
import yaml

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, KRUISE_GROUP
from federation.api.secretvalues import carries_secret_values
from federation.apimachinery import dotpaths, nameformats
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import parse_rfc3339, to_rfc3339
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.resources import Object
from federation.planning.federatedobject.federatedtemplate import IGNORED_ANNOTATIONS
from federation.planning.guard.undo import UNDO_WINDOW
from federation.planning.status.schedulingsummary import describe_placement
from federation.plans.diffs import OF_THE_SERVER
from federation.plans.documents import parse_manifests
from federation.plans.edits import Edit
from federation.plans.migration import Wish, copies_to_ask_for
from federation.web.ui.actions.action import Action, Field, Form, Subject, required

_RESTARTED = "kubectl.kubernetes.io/restartedAt"
_REPLICAS_MAX = 1_000_000
_LABELS_MAX = 200
YAML_BYTES_MAX = 256 << 10
_PAUSES: Mapping[tuple[str, str], tuple[dotpaths.Path, str, str]] = {
    ("apps", "Deployment"): (("spec", "paused"), "changes of its pods are rolled out", "its pods stay as they are"),
    (KRUISE_GROUP, "CloneSet"): (
        ("spec", "updateStrategy", "paused"),
        "changes of its pods are rolled out",
        "its pods stay as they are",
    ),
    ("batch", "CronJob"): (("spec", "suspend"), "it starts Jobs again", "it starts no Job"),
    ("batch", "Job"): (("spec", "suspend"), "its pods start again", "its pods are stopped"),
}
_RESTARTS = frozenset(
    (("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), (KRUISE_GROUP, "CloneSet"),
     (KRUISE_GROUP, "StatefulSet"), (KRUISE_GROUP, "DaemonSet"))
)  # fmt: skip


def _replicas(subject: Subject) -> int | None:
    value = subject.spec.get("replicas")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _to_scale(subject: Subject, form: Form) -> Edit:
    text = required(form, "replicas", "Replicas")
    if not (text.isascii() and text.isdecimal()) or int(text[:9]) > _REPLICAS_MAX or len(text) > 7:
        raise ConfigurationError(f"Replicas: write a whole number from 0 to {_REPLICAS_MAX}")
    if int(text) == _replicas(subject):
        raise ConfigurationError(f"Replicas: it has {text} already")
    return subject.merge({"spec": {"replicas": int(text)}})


def _nested(path: dotpaths.Path, value: Any) -> Object:
    for part in reversed(path):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def _is_paused(subject: Subject) -> bool | None:
    """Return whether the object is paused, None if it cannot be."""
    row = _PAUSES.get(subject.key)
    return None if row is None else dotpaths.get(subject.obj, row[0]) is True


def _to_pause(subject: Subject, *, is_paused: bool) -> Edit:
    return subject.merge(_nested(_PAUSES[subject.key][0], is_paused))


def _to_restart(subject: Subject, form: Form) -> Edit:
    del form
    annotations = {_RESTARTED: to_rfc3339(subject.now)}
    return subject.merge({"spec": {"template": {"metadata": {"annotations": annotations}}}})


def _to_rebalance(subject: Subject, form: Form) -> Edit:
    del form
    return subject.merge({"metadata": {"annotations": {names.REBALANCE: to_rfc3339(subject.now)}}})


def _is_sent(subject: Subject) -> bool:
    """Return whether a user has said where it is to be."""
    annotations = subject.obj["metadata"].get("annotations") or {}
    return any(name in annotations for name in Wish().to_patch()["metadata"]["annotations"])


def _to_move(subject: Subject, form: Form) -> Edit:
    clusters = [name.strip() for name in required(form, "clusters", "Clusters").split(",")]
    if wrong := next((name for name in clusters if nameformats.dns1123_subdomain(name)), None):
        raise ConfigurationError(f"Clusters: {wrong[:100]!r} is no name of a cluster; write names with commas between")
    patch = Wish(to=frozenset(clusters)).to_patch()
    patch["metadata"]["annotations"] |= copies_to_ask_for(subject.obj, subject.now)
    return subject.merge(patch)


def _can_undo(subject: Subject) -> bool:
    at: datetime | None = parse_rfc3339((subject.move or {}).get("at"))
    return at is not None and subject.now - at <= UNDO_WINDOW


def _to_undo(subject: Subject, form: Form) -> Edit:
    if form.get("move") != (subject.move or {}).get("at"):
        raise ConfigurationError("It has moved again since you opened this page. Look at it again; nothing was undone.")
    return subject.merge({"metadata": {"annotations": {names.UNDO: form["move"]}}})


def _undo_text(subject: Subject) -> str:
    placement = describe_placement((subject.move or {}).get("placement") or {})
    return (
        f"It goes back to where it was before its last move: {placement}. Replicas start there before they stop here."
    )


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as lines to edit."""
    return "\n".join(f"{key}={value}" for key, value in sorted(labels.items()))


def parse_labels(text: str) -> dict[str, str]:
    """Return the labels of lines `key=value`; ConfigurationError names the line that is wrong."""
    labels: dict[str, str] = {}
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > _LABELS_MAX:
        raise ConfigurationError(f"Labels: {len(lines)} lines; at most {_LABELS_MAX}")
    for line in lines:
        key, separator, value = line.partition("=")
        problems = nameformats.qualified_name(key) + nameformats.label_value(value)
        if not separator or problems:
            raise ConfigurationError(f"Labels: {line[:100]!r}: {problems[0] if problems else 'write key=value'}")
        if key in labels:
            raise ConfigurationError(f"Labels: {key} occurs twice")
        labels[key] = value
    return labels


def _to_labels(subject: Subject, form: Form) -> Edit:
    present = subject.obj["metadata"].get("labels") or {}
    patch = create_merge_patch(present, parse_labels(form.get("labels", "")))
    if not patch:
        raise ConfigurationError("Labels: nothing is changed")
    return subject.merge({"metadata": {"labels": patch}})


def editable(obj: Mapping[str, Any]) -> Object:
    """Return an object without what the server and the control plane write."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in OF_THE_SERVER}
    annotations = metadata.get("annotations")
    if isinstance(annotations, Mapping):  # else the server says what is wrong with them
        del metadata["annotations"]
        ours = {key: value for key, value in annotations.items() if key not in IGNORED_ANNOTATIONS}
        metadata |= {"annotations": ours} if ours else {}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


def _yaml_text(obj: Mapping[str, Any]) -> str:
    order = {key: at for at, key in enumerate(("apiVersion", "kind", "metadata", "spec"))}
    shown = dict(sorted(editable(obj).items(), key=lambda item: order.get(item[0], len(order))))
    return str(yaml.dump(shown, Dumper=yaml.CSafeDumper, sort_keys=False, width=120, allow_unicode=True))


def _has_yaml(subject: Subject) -> bool:
    """Return whether the object can be edited as YAML: it is not too large, and shows no values of Secrets."""
    stored = orjson.dumps(subject.obj)
    return subject.key != ("", "Secret") and len(stored) <= YAML_BYTES_MAX and not carries_secret_values(stored)


def _to_yaml_edit(subject: Subject, form: Form) -> Edit:
    text = required(form, "yaml", "YAML").replace("\r\n", "\n")
    if len(text.encode()) > YAML_BYTES_MAX:
        raise ConfigurationError(f"YAML: more than {YAML_BYTES_MAX >> 10} KiB")
    documents = list(parse_manifests("YAML", text))
    if len(documents) != 1:
        raise ConfigurationError("YAML: write this one object")
    before, after = editable(subject.obj), editable(documents[0].manifest)
    for path in (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")):
        if dotpaths.get(before, path) != dotpaths.get(after, path):
            raise ConfigurationError(f"YAML: {'.'.join(path)} cannot be changed; it is {dotpaths.get(before, path)!r}")
    patch = create_merge_patch(before, after)
    if not patch:
        raise ConfigurationError("YAML: nothing is changed")
    return subject.merge(patch)


def _to_deletion(subject: Subject, form: Form) -> Edit:
    if form.get("confirm", "").strip() != subject.name:
        raise ConfigurationError(f"Name: write {subject.name} to delete it")
    return subject.delete()


def _deletion_text(subject: Subject) -> str:
    kind = str(subject.obj["kind"])
    where = " in this namespace" if subject.namespace else ""
    data = " Its data are lost with it." if kind in ("PersistentVolumeClaim", "Namespace", "PersistentVolume") else ""
    return (
        f"{kind} {subject.name}{where} is deleted on the host and in every cluster that has it.{data} If the guard"
        " counts many deletions of one cause, it waits for approval."
    )


def _confirm_field(subject: Subject) -> Sequence[Field]:
    return (Field("confirm", f"Name, to confirm: {subject.name}", "text"),)


ACTIONS: Sequence[Action] = (
    Action(
        "scale",
        "Scale",
        "Scale",
        lambda subject: _replicas(subject) is not None,
        _to_scale,
        lambda subject: (
            f"It wants {to_count(_replicas(subject) or 0, 'replica')} now. The policy divides the new number."
        ),
        lambda subject: (Field("replicas", "Replicas", "number", str(_replicas(subject))),),
    ),
    Action(
        "restart",
        "Restart",
        "Restart",
        lambda subject: subject.key in _RESTARTS,
        _to_restart,
        lambda _: "All its pods are replaced, a few at a time, within its budget and the waves of its policy.",
    ),
    Action(
        "pause",
        "Pause",
        "Pause",
        lambda subject: _is_paused(subject) is False,
        lambda subject, _: _to_pause(subject, is_paused=True),
        lambda subject: f"Until it is resumed, {_PAUSES[subject.key][2]}.",
    ),
    Action(
        "resume",
        "Resume",
        "Resume",
        lambda subject: _is_paused(subject) is True,
        lambda subject, _: _to_pause(subject, is_paused=False),
        lambda subject: f"From now on {_PAUSES[subject.key][1]}.",
    ),
    Action(
        "rebalance",
        "Rebalance",
        "Rebalance",
        lambda subject: subject.is_divided,
        _to_rebalance,
        lambda _: "Its replicas are divided once more, without regard to where they run now.",
    ),
    Action(
        "move",
        "Move",
        "Move",
        lambda subject: subject.is_divided or subject.key in _RESTARTS,
        _to_move,
        lambda _: (
            "It runs in these clusters only, until its policy decides again. Replicas start there before they end."
        ),
        lambda _: (Field("clusters", "Clusters", "text", hint="member-1, member-2"),),
    ),
    Action(
        "follow",
        "Let the policy decide",
        "Let the policy decide",
        _is_sent,
        lambda subject, _: subject.merge(Wish().to_patch()),
        lambda _: "What a user has said about its clusters is removed. What runs in a cluster of the policy stays.",
    ),
    Action(
        "undo",
        "Undo the move",
        "Undo the move",
        _can_undo,
        _to_undo,
        _undo_text,
        lambda subject: (Field("move", "", "hidden", str((subject.move or {}).get("at") or "")),),
        is_planned=False,
    ),
    Action(
        "labels",
        "Labels",
        "Write the labels",
        lambda _: True,
        _to_labels,
        lambda _: "Labels decide which policies and services select it.",
        lambda subject: (
            Field("labels", "Labels", "lines", labels_text(subject.obj["metadata"].get("labels") or {}), "key=value"),
        ),
    ),
    Action(
        "yaml",
        "Edit YAML",
        "Write it",
        _has_yaml,
        _to_yaml_edit,
        lambda _: "Nothing is written before you have seen the difference.",
        lambda subject: (Field("yaml", "Manifest", "yaml", _yaml_text(subject.obj)),),
    ),
    Action(
        "delete",
        "Delete",
        "Delete",
        lambda subject: subject.resource.group_resource != FEDERATED_CLUSTERS.group_resource,
        _to_deletion,
        _deletion_text,
        _confirm_field,
        verb="delete",
        is_final=True,
    ),
)
"""In the order of their buttons."""
