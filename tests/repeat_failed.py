"""Run the tests again that failed in the last `make test`: once, alone, and only if they are few.

    python tests/repeat_failed.py

A failure by chance on a busy machine must not stop a change in continuous integration. What passes now is named, so
that its cause can be found. The exit code is 0 if all of them pass.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

FAILED_MAX = 5
_LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
# pytest-xdist appends the group of a test to its name.
_GROUP = re.compile(r"@[\w.-]+$")


def main() -> int:
    """Return the exit code."""
    names = json.loads(_LAST_FAILED.read_text()) if _LAST_FAILED.exists() else {}
    failed = sorted({_GROUP.sub("", name) for name in names})
    if not 0 < len(failed) <= FAILED_MAX:
        print(f"{len(failed)} failed tests are not repeated; one to {FAILED_MAX} would be.")
        return 1
    print(f"Repeating {len(failed)} failed tests. What passes now failed by chance: find out why.", flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", "-v", *failed], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
