"""Write generated files, or check that they are up to date."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def update(rendered: Mapping[Path, str], present: Iterable[Path], tool: str, arguments: list[str]) -> int:
    """Write the files that differ and delete those of `present` that are not rendered; return the exit code.

    With `--check` write nothing: name the files, and return 1 if there are any.
    """
    stale = [path for path, text in rendered.items() if not path.exists() or path.read_text() != text]
    extra = [path for path in present if path not in rendered]
    if "--check" in arguments:
        for path in stale + extra:
            sys.stdout.write(f"{path.relative_to(ROOT)} is out of date; run tools/{tool}\n")
        return 1 if stale or extra else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered[path])
    for path in extra:
        path.unlink()
    return 0
