"""Warnings about volumes that write one file twice, or a file where they need a folder. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Fields = Mapping[str, Any]
_File = tuple[str, str]
"""The path of a file, and its source if the volume has several."""
_COMPARED_MAX: Final = 64
"""Files of one volume that each further one is compared with: a volume may have thousands."""


def overlapping_paths(volumes: Sequence[Fields]) -> Iterator[str]:
    """Yield a warning for each pair of files of one volume whose paths overlap."""
    for volume in volumes:
        name = volume.get("name", "")
        for described, files in _volume_files(volume):
            for file, other in _overlaps(files):
                yield f'volume "{name}" ({described}): overlapping paths: {_shown(file)} with {_shown(other)}'
        projected = volume.get("projected")
        if projected is not None:
            yield from _projected(name, projected)


def _volume_files(volume: Fields) -> Iterator[tuple[str, list[_File]]]:
    for kind, described, key in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        if source := volume.get(kind):
            yield f'{described} "{source.get(key, "")}"', _items(source, "")
    if source := volume.get("downwardAPI"):
        yield "DownwardAPI", _items(source, "")


def _projected(name: str, projected: Fields) -> Iterator[str]:
    files: list[_File] = []
    for source in projected.get("sources") or ():
        if not source:
            yield f'volume "{name}" (Projected) has no sources provided'
            continue
        for file in _source_files(source):
            for other in files[:_COMPARED_MAX]:
                if _overlap(file, other):
                    yield f'volume "{name}" (Projected): overlapping paths: {_shown(file)} with {_shown(other)}'
            files.append(file)


def _source_files(source: Fields) -> list[_File]:
    for kind, described in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if (found := source.get(kind)) is not None and found.get("items") is not None:
            return _items(found, f'{described} "{found.get("name", "")}"')
    if (found := source.get("downwardAPI")) is not None and found.get("items") is not None:
        return _items(found, "DownwardAPI")
    if (found := source.get("serviceAccountToken")) is not None:
        return [_file(found.get("path"), "ServiceAccountToken")]
    if (found := source.get("clusterTrustBundle")) is not None:
        named = found.get("name") if found.get("name") is not None else found.get("signerName")
        return [_file(found.get("path"), f'ClusterTrustBundle "{named}"')]
    found = source.get("podCertificate") or {}
    parts = (
        ("certificateChainPath", "chain"),
        ("keyPath", "key"),
        ("credentialBundlePath", "credential bundle"),
    )
    return [_file(found[key], f"PodCertificate {what}") for key, what in parts if found.get(key)]


def _items(source: Fields, described: str) -> list[_File]:
    return [_file(item.get("path"), described) for item in source.get("items") or ()]


def _file(path: Any, described: str) -> _File:
    return (path if isinstance(path, str) else "").rstrip("/"), described


def _overlaps(files: Sequence[_File]) -> Iterator[tuple[_File, _File]]:
    for index, file in enumerate(files):
        for other in files[: min(index, _COMPARED_MAX)]:
            if _overlap(file, other):
                yield file, other


def _overlap(file: _File, other: _File) -> bool:
    first, second = f"{file[0]}/", f"{other[0]}/"
    return bool(file[0] and other[0]) and (first.startswith(second) or second.startswith(first))


def _shown(file: _File) -> str:
    path, described = file
    return f'"{path}" ({described})' if described else f'"{path}"'
