"""The role of one of several processes on one database: it serves the API, may run the controllers, or both."""

from federation.apimachinery.errors import ConfigurationError

ALL, API, CONTROLLERS = "all", "api", "controllers"


def runs_controllers(role: str, *, is_shared: bool) -> bool:
    """Return whether a process may run the controllers; ConfigurationError for a role that it cannot have.

    `is_shared` says whether other processes can use the same database.
    """
    if role not in (ALL, API, CONTROLLERS):
        raise ConfigurationError(f"role: {role!r} is none of {ALL}, {API}, {CONTROLLERS}")
    if role != ALL and not is_shared:
        raise ConfigurationError(
            f"role: {role} is for one of several processes on one database; set FEDERATION_STORE_URL to a"
            f" PostgreSQL database, or use role {ALL}"
        )
    return role != API


def is_published(role: str) -> bool:
    """Return whether clients find a process of this role in the endpoints of the API."""
    return role != CONTROLLERS
