"""Access to the behaviour vectors beside the checkout.

`load("planner_random")` gives the cases of `vectors/planner_random.json`. The folder is `../shared/vectors` seen from the
repository, or what FEDERATION_VECTORS names; when it is missing the whole test module is skipped and says so.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("FEDERATION_VECTORS", ROOT.parent / "shared" / "vectors"))


def load(name: str) -> list[dict[str, Any]]:
    """Return the cases of one vector file; skips the calling module when the folder is missing."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        pytest.skip(
            f"behaviour vectors are missing: {path} (set FEDERATION_VECTORS to their folder)", allow_module_level=True
        )
    cases: list[dict[str, Any]] = json.loads(path.read_text())["cases"]
    return cases


def filled(given: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return the keys of `given` that are present and not null, with a default for the others.

    The formats treat an absent key, null and the empty value alike, as Go does, unless they say otherwise.
    """
    return defaults | {key: value for key, value in given.items() if value is not None}


def case_id(case: dict[str, Any]) -> str:
    """Return a readable test id."""
    return str(case["name"]).replace(" ", "_")[:80]
