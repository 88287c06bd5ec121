"""Why a file cannot be read, with the file or folder that a mistaken path most likely means."""

from pathlib import Path

from federation.apimachinery.nearestname import did_you_mean


def unreadable(path: Path, error: OSError | UnicodeDecodeError) -> str:
    """Return the reason in one line."""
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"{error.strerror}{nearest_file(path)}"


def nearest_file(path: Path) -> str:
    """Return `; did you mean NAME?` for a path that does not exist, "" for one that does or without a similar name."""
    try:
        return "" if path.exists() else did_you_mean(path.name, [each.name for each in path.parent.iterdir()])
    except OSError:
        return ""
