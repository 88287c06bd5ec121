"""The end of every benchmark: its own goals, if any, and one JSON line with name, parameters and results.

`table.py` and other programs read the JSON line, which is always the last line on standard output.
"""

import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from federation.apimachinery.interpreter import slow_build

Results = Mapping[str, Any]
Goals = Mapping[str, tuple[str, float]]
"""By result: ">=" or "<=", and the limit."""

LIBRARIES = ("aiohttp", "httptools", "msgspec", "orjson", "sqlalchemy", "uvloop")
"""Libraries on hot paths."""


def print_report(name: str, parameters: Results, results: Results, goals: Goals | None = None) -> None:
    """Print a line per measured goal, then the JSON line. Numbers have at most four decimals."""
    for key, (sign, limit) in (goals or {}).items():
        if key in results:
            verdict = "met" if is_met(results[key], sign, limit) else "MISSED"
            print(f"{key:28}{results[key]:14,.1f}   goal {sign} {limit:<8,g} {verdict}")
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in results.items()}
    line = {
        "name": name,
        "parameters": {**parameters, **to_environment()},
        "results": rounded,
    }
    print(json.dumps(line), flush=True)


def to_environment() -> dict[str, Any]:
    """Return what else a result depends on; the load is that of the minute before the end, this benchmark's included."""
    return {
        "cores": os.cpu_count() or 0,
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "isSlowBuild": bool(slow_build()),
        "versions": {name: version(name) for name in LIBRARIES},
    }


def is_met(value: float, sign: str, limit: float) -> bool:
    return value >= limit if sign == ">=" else value <= limit
