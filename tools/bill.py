"""What is in a release and where it came from: a bill of materials (CycloneDX) and a statement of provenance (SLSA).

Both are pure functions of what was built. The bill lists the packages of the image, those of Debian and those of
Python, with versions, licences and package addresses, as scanners for vulnerabilities read them. The provenance is an
in-toto statement: the files of the release by their SHA-256, the commit and the packages that they were made of, and
by which tool. It is covered by the signature of SHA256SUMS.
"""

import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.image import DebianPackage

BUILD_TYPE = "https://federation.kubeadmiral.io/build/release/v1"
_EXPRESSION = re.compile(r"[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+-]+)*")


def time_of(at: int) -> str:
    """Return a time as both formats write it."""
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def python_components(tree: Path) -> list[dict[str, Any]]:
    """Return a component for each Python package that is installed in a folder."""
    found = []
    for file in sorted(tree.glob("*.dist-info/METADATA")):
        fields = HeaderParser().parsestr(file.read_text())
        name, version = str(fields["Name"]), str(fields["Version"])
        purl = f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{quote(version)}"
        component: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
        licence = str(fields["License-Expression"] or "")
        if _EXPRESSION.fullmatch(licence):
            component["licenses"] = [{"expression": licence}]
        elif (text := str(fields["License"] or "").strip()) and "\n" not in text:
            component["licenses"] = [{"license": {"name": text}}]
        found.append(component)
    return found


def debian_components(packages: Iterable[DebianPackage]) -> list[dict[str, Any]]:
    """Return a component for each package of Debian."""
    found = []
    for package in packages:
        version = quote(package.version, safe="")
        purl = f"pkg:deb/debian/{package.name}@{version}?arch={package.architecture}&distro=debian-12"
        found.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": package.name,
                "version": package.version,
                "purl": purl,
                "hashes": [{"alg": "SHA-256", "content": package.sha256}],
            }
        )
    return found


def bill_of_materials(version: str, digest: str, components: Sequence[Mapping[str, Any]], at: int) -> dict[str, Any]:
    """Return a CycloneDX document of the image with this digest."""
    purl = f"pkg:oci/federation@{quote(digest, safe='')}?tag={version}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, purl)}",
        "version": 1,
        "metadata": {
            "timestamp": time_of(at),
            "component": {"type": "container", "bom-ref": purl, "name": "federation", "version": version, "purl": purl},
        },
        "components": list(components),
        "dependencies": [{"ref": purl, "dependsOn": sorted(str(component["bom-ref"]) for component in components)}],
    }


def provenance(version: str, commit: str, folder: Path, materials: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return an in-toto statement about all files of a folder, which were built from a commit.

    `materials` are further packages that went into them, each with `uri` and `sha256`.
    """
    subjects = [
        {"name": file.name, "digest": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}
        for file in sorted(folder.iterdir())
    ]
    source = {"uri": f"pkg:generic/federation@{version}", "digest": {"gitCommit": commit}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": version},
                "internalParameters": {},
                "resolvedDependencies": [
                    source,
                    *({"uri": each["uri"], "digest": {"sha256": each["sha256"]}} for each in materials),
                ],
            },
            "runDetails": {"builder": {"id": f"{BUILD_TYPE}/tools/release.py"}},
        },
    }
