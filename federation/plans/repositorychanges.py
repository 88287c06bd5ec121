"""The changes of manifests between two states of a repository: new and changed objects, and deleted ones. Pure.

`terminal/repository.py` reads the files. Only files that differ are compared, and objects are compared by kind and
name, so an object that moves to another file is no change.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.plans.documents import Document, parse_repository_file

Files = Mapping[str, str]
"""Texts by path."""
ObjectKey = tuple[str, str, str, str]
"""Group, kind, namespace ("" if the manifest names none) and name."""


@dataclass(frozen=True, slots=True)
class RepositoryChange:
    """Objects to apply, the manifests of objects to delete, and what was left out, with the reason."""

    documents: Sequence[Document]
    deleted: Sequence[Document]
    left_out: Sequence[str]


def compare_files(before: Files, after: Files) -> RepositoryChange:
    """Return the changes of manifests; ConfigurationError names a file that is wrong after them.

    Files that were wrong before count as empty: the change may mend them.
    """
    left_out: list[str] = []
    old: dict[ObjectKey, Document] = {}
    for path, text in before.items():
        try:
            documents, _ = parse_repository_file(path, text)
        except ConfigurationError as error:
            left_out.append(f"what {path} had before: {error}")
        else:
            old |= {key_of(document.manifest): document for document in documents}
    new: dict[ObjectKey, Document] = {}
    for path, text in after.items():
        documents, others = parse_repository_file(path, text)
        left_out += [f"{origin}: no manifest" for origin in others]
        for document in documents:
            first = new.setdefault(key_of(document.manifest), document)
            if first is not document:
                kind, name = document.manifest["kind"], document.manifest["metadata"]["name"]
                raise ConfigurationError(f"{document.origin}: {first.origin} also has {kind} {name}; keep one")
    return RepositoryChange(
        [document for key, document in new.items() if key not in old or old[key].manifest != document.manifest],
        [document for key, document in old.items() if key not in new],
        left_out,
    )


def key_of(manifest: Object) -> ObjectKey:
    """Return the key of a manifest; other versions of its group are the same object."""
    metadata = manifest["metadata"]
    group = manifest["apiVersion"].rpartition("/")[0]
    return group, manifest["kind"], metadata.get("namespace") or "", metadata["name"]


def with_annotation(documents: Iterable[Document], name: str, value: str) -> list[Document]:
    """Return the documents with an annotation on every object."""
    return [Document(each.origin, _annotated(each.manifest, name, value)) for each in documents]


def _annotated(manifest: Object, name: str, value: str) -> Object:
    metadata = manifest["metadata"]
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, dict):
        return manifest  # the server says what is wrong
    return {**manifest, "metadata": {**metadata, "annotations": {**annotations, name: value}}}
