"""Generate the CustomResourceDefinitions of the federation's kinds.

`python tools/generate_crds.py` writes `federation/api/crds.json` (for the control plane) and
`charts/federation/crds/*.yaml` (for Helm). `--check` writes nothing and exits 1 if a file is out of date.
"""

import sys
from pathlib import Path
from typing import Any

import orjson
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.definitions import build_crds
from tools.generated import ROOT, update

RUNTIME = ROOT / "federation" / "api" / "crds.json"
CHART = ROOT / "charts" / "federation" / "crds"
_HEADER = "# Generated from federation/api by tools/generate_crds.py. Do not edit.\n"


class _Dumper(yaml.SafeDumper):
    """Writes no YAML aliases, which are hard to read and which some tools reject."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def render(crds: list[dict[str, Any]]) -> dict[Path, str]:
    """Return the text of every generated file by path."""
    # One definition per line: the chart has them for readers.
    rendered = {RUNTIME: "[\n" + ",\n".join(orjson.dumps(crd).decode() for crd in crds) + "\n]\n"}
    for crd in crds:
        name = crd["spec"]["group"] + "_" + crd["spec"]["names"]["plural"]
        rendered[CHART / f"{name}.yaml"] = _HEADER + yaml.dump(
            crd, Dumper=_Dumper, sort_keys=False, width=118, allow_unicode=True
        )
    return rendered


def main(arguments: list[str]) -> int:
    """Write or check the files; return the exit code."""
    return update(render(build_crds()), CHART.glob("*.yaml"), "generate_crds.py", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
