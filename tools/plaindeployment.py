"""Count the modules and functions of the control plane that a plain Deployment runs.

`python -m tools.plaindeployment [--without-wings] [--start] [--list]` starts a federation in this process, on a virtual
clock, and creates a Deployment with a policy for two clusters. It prints one JSON object: `modules` and
`functionsUntilCounted` run until the Deployment is delivered and its status is counted, `functions` until it is placed.
The API server is not counted: another one may be the host. `--list` prints the names of the modules.
`tests/architecture/test_wings.py` keeps the numbers from growing.
"""

import argparse
import asyncio
import importlib
import json
import sys
from pathlib import Path

from tools import wingless

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-wings", action="store_true", help="refuse the leaf features")
    parser.add_argument("--start", action="store_true", help="import all modules and start a control plane, too")
    parser.add_argument("--list", action="store_true", help="print the modules, too")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if options.without_wings:
        wingless.install()
    plainrun = importlib.import_module("tools.plainrun")
    found = asyncio.run(plainrun.run())
    if options.start:
        found |= {"imported": plainrun.import_all(), "url": asyncio.run(plainrun.start())}
    if not options.list:
        found["modules"] = len(found["modules"])
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
