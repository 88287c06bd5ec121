"""federation/processrole.py: what a role allows, and where it can be used."""

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.processrole import is_published, runs_controllers


def test_a_role_limits_what_a_process_does() -> None:
    assert runs_controllers("all", is_shared=False)
    assert not runs_controllers("api", is_shared=True)
    assert runs_controllers("controllers", is_shared=True)
    assert [is_published(role) for role in ("all", "api", "controllers")] == [True, True, False]


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ("worker", "role: 'worker' is none of all, api, controllers"),
        ("api", r"role: api is for one of several processes.*FEDERATION_STORE_URL"),
    ],
)
def test_a_role_that_a_process_cannot_have_is_refused(role: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        runs_controllers(role, is_shared=False)
