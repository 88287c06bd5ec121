"""Generate the CustomResourceDefinitions of the federation's kinds.

`python tools/generate_crds.py` writes `federation/api/crds.json` (for the control plane) and
`charts/federation/crds/*.yaml` (for Helm). `--check` writes nothing and exits 1 if a file is out of date.
"""

import sys
from pathlib import Path
from typing import Any

import orjson
import yaml

from federation.api.schema.definitions import build_crds

ROOT = Path(__file__).resolve().parents[1]
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
    rendered = {RUNTIME: orjson.dumps(crds, option=orjson.OPT_INDENT_2).decode() + "\n"}
    for crd in crds:
        name = crd["spec"]["group"] + "_" + crd["spec"]["names"]["plural"]
        rendered[CHART / f"{name}.yaml"] = _HEADER + yaml.dump(
            crd, Dumper=_Dumper, sort_keys=False, width=118, allow_unicode=True
        )
    return rendered


def main(arguments: list[str]) -> int:
    """Write or check the files; return the exit code."""
    rendered = render(build_crds())
    stale = [path for path, text in rendered.items() if not path.exists() or path.read_text() != text]
    extra = [path for path in CHART.glob("*.yaml") if path not in rendered]
    if "--check" in arguments:
        for path in stale + extra:
            sys.stdout.write(f"{path.relative_to(ROOT)} is out of date; run tools/generate_crds.py\n")
        return 1 if stale or extra else 0
    CHART.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.write_text(rendered[path])
    for path in extra:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
