"""From the text of a variable or a flag to the value of a setting. Pure."""

from pathlib import Path

from federation.apimachinery.errors import ConfigurationError


def to_value(name: str, kind: object, text: str | list[str]) -> object:
    """Return the value of a setting of this type; ConfigurationError names the variable of a malformed one."""
    if isinstance(text, list):
        return tuple(text)
    if kind is bool:
        if text not in ("true", "false"):
            raise ConfigurationError(f"FEDERATION_{name.upper()}={text!r} is neither true nor false")
        return text == "true"
    try:
        if kind is int:
            return int(text)
        if kind is float:
            return float(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise ConfigurationError(f"FEDERATION_{name.upper()}={text!r} is not {expected}") from None
    if kind == tuple[str, ...]:
        return tuple(entry.strip() for entry in text.split(",") if entry.strip())
    return Path(text) if kind is Path else text
