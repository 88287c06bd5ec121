"""Generate JSON schemas of the federation's kinds, for editors and for checks of manifests without a cluster.

`python tools/generate_json_schemas.py` writes `docs/schemas/GROUP/KIND_VERSION.json`, the layout that kubeconform and
editors with YAML support expect. `--check` writes nothing and exits 1 if a file is out of date.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.definitions import build_crds
from tools.generated import ROOT, update

FOLDER = ROOT / "docs" / "schemas"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_METADATA = {"type": "object", "description": "Standard object's metadata."}


def to_json_schema(crd: Mapping[str, Any], version: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of one version of a kind: the CRD's, in which unknown fields are errors."""
    names, group = crd["spec"]["names"], crd["spec"]["group"]
    schema = _convert(version["schema"]["openAPIV3Schema"])
    metadata = schema["properties"].get("metadata") or {}
    schema["properties"] |= {
        "apiVersion": {"const": f"{group}/{version['name']}"},
        "kind": {"const": names["kind"]},
        "metadata": {**_METADATA, **metadata, "additionalProperties": True},
    }
    schema["required"] = sorted({"apiVersion", "kind", "metadata", *schema.get("required", ())})
    return {"$schema": _DIALECT, "title": names["kind"], **schema}


def _convert(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a structural schema in the words of JSON Schema: no x-kubernetes extensions, closed objects."""
    result: dict[str, Any] = {}
    for key, value in schema.items():
        match key:
            case "properties":
                result[key] = {name: _convert(part) for name, part in value.items()}
            case "items" | "additionalProperties" if isinstance(value, Mapping):
                result[key] = _convert(value)
            case "nullable":
                pass
            case _ if not key.startswith("x-kubernetes-"):
                result[key] = value
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    is_open = schema.get("x-kubernetes-preserve-unknown-fields")
    if "properties" in result and not is_open:
        result.setdefault("additionalProperties", False)
    if schema.get("nullable") and isinstance(result.get("type"), str):
        result["type"] = [result["type"], "null"]
    return result


def render() -> dict[Path, str]:
    """Return the text of every file by path."""
    rendered = {}
    for crd in build_crds():
        for version in crd["spec"]["versions"]:
            kind = crd["spec"]["names"]["kind"].lower()
            path = FOLDER / crd["spec"]["group"] / f"{kind}_{version['name']}.json"
            rendered[path] = orjson.dumps(to_json_schema(crd, version), option=orjson.OPT_INDENT_2).decode() + "\n"
    return rendered


def main(arguments: list[str]) -> int:
    """Write or check the files; return the exit code."""
    return update(render(), FOLDER.rglob("*.json"), "generate_json_schemas.py", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
