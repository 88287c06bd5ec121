"""Every layer's options composed, and the one reader of environment and files that hold settings.

`Settings` is made by the command line (flags win), from `FEDERATION_*` environment variables, and from defaults, in
that order. Only `assembly` and `cli` know it; each layer knows its own options dataclass.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from federation.base.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Settings:
    """How one control plane runs."""

    directory: Path
    """Where state, keys and kubeconfigs live."""
    host: str = "127.0.0.1"
    """Address to listen on; other than loopback only when told."""
    port: int = 7443
    """TCP port; 0 picks a free one."""
    store_url: str = ""
    """SQLAlchemy URL of the store; empty: SQLite in `directory`."""
    member_requests_in_flight_max: int = 16
    """Requests to one member at the same time."""
    member_request_timeout_s: float = 10.0
    """Deadline of one request to a member."""
    health_period_s: float = 10.0
    """Between two health probes of a member."""
    health_threshold_s: float = 30.0
    """How long a changed observation must last before it is published."""
    namespace_exclude_regexp: str = ""
    """Namespaces that are not propagated automatically, besides the built-in ones."""

    @property
    def database_url(self) -> str:
        """The store's URL with the default filled in."""
        return self.store_url or f"sqlite:///{self.directory / 'state.db'}"


def from_environment(overrides: Mapping[str, object], environ: Mapping[str, str] | None = None) -> Settings:
    """Return settings: `overrides` (None means not given), then FEDERATION_<FIELD>, then the default.

    ConfigurationError names the variable when its value is not of the field's type.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, object] = {}
    for field in fields(Settings):
        given = overrides.get(field.name)
        text = environ.get(f"FEDERATION_{field.name.upper()}")
        if given is not None:
            values[field.name] = given
        elif text is not None:
            values[field.name] = _convert(field.name, field.type, text)
    return Settings(**values)  # type: ignore[arg-type]  # each value has its field's type by _convert or by the caller


def _convert(name: str, kind: object, text: str) -> object:
    try:
        if kind is int:
            return int(text)
        if kind is float:
            return float(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise ConfigurationError(f"FEDERATION_{name.upper()}={text!r} is not {expected}") from None
    return Path(text) if kind is Path else text
