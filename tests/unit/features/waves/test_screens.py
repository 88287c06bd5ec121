"""What the buttons of a rollout write."""

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.features.waves.screens import to_spec


def test_buttons_write_what_the_command_line_writes() -> None:
    shown = {"revision": "3", "wave": "rest"}
    assert to_spec({"do": "pause", **shown}) == {"paused": True}
    assert to_spec({"do": "resume", **shown}) == {"paused": False}
    assert to_spec({"do": "abort", **shown}) == {"abort": 3}
    assert to_spec({"do": "rollback", **shown}) == {"rollBack": 3}
    assert to_spec({"do": "approve", **shown}) == {"approvedWave": {"revision": 3, "wave": "rest", "reason": None}}


def test_a_wave_after_one_that_failed_starts_with_a_reason_only() -> None:
    form = {"do": "approve", "revision": "3", "wave": "rest", "failure": "pods crash"}
    with pytest.raises(ConfigurationError, match=r"a wave has failed \(pods crash\): give a reason"):
        to_spec({**form, "reason": " "})
    assert to_spec({**form, "reason": "known"})["approvedWave"]["reason"] == "known"


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"do": "approve", "revision": "3"},
        {"do": "approve", "revision": "-1", "wave": "a"},
        {"do": "approve", "revision": "٣", "wave": "a"},
        {"do": "abort", "revision": "9" * 40},
        {"do": "delete", "revision": "3"},
    ],
)
def test_other_forms_are_refused(form: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="Open the page again"):
        to_spec(form)
