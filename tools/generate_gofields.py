"""Generate how Go encodes empty fields of built-in kinds: `python -m tools.generate_gofields`.

A Go program in tests/kubernetes reads the API types by reflection; Go and a module proxy are needed. The result,
`federation/apiserver/semantics/schema/gofields.json`, has one type per line, sorted by name, and is committed. Only the
types of `builtin.json` are kept. Run it after `tools.generate_schema`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from federation.apiserver.semantics.schema.builtin import definition_names

ROOT = Path(__file__).resolve().parents[1]
MODULE = ROOT / "tests" / "kubernetes"
TARGET = ROOT / "federation" / "apiserver" / "semantics" / "schema" / "gofields.json"


def generate() -> str:
    """Return the text of the file."""
    environment = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    command = ["go", "run", "./gofields"]
    run = subprocess.run(command, cwd=MODULE, env=environment, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603  # fixed arguments
    printed = run.stdout
    known = definition_names()
    types = {name: fields for name, fields in json.loads(printed).items() if name in known}
    lines = [f"{json.dumps(name)}: {json.dumps(types[name], separators=(',', ':'))}" for name in sorted(types)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Write the file."""
    TARGET.write_text(generate())
    sys.stderr.write(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
