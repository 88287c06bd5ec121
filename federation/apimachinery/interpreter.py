"""Whether this Python is a slow build: without profile-guided optimisation it needs up to half more CPU."""

import platform
import sysconfig


def slow_build() -> str:
    """Return the version of a Python that was built without profile-guided optimisation, "" for any other."""
    settings = (str(sysconfig.get_config_var(name) or "") for name in ("CONFIG_ARGS", "prefix"))
    return platform.python_version() if is_slow_build(*settings) else ""


def is_slow_build(configured: str, prefix: str) -> bool:
    """Return True for a build that was configured without `--enable-optimizations`.

    Distributions optimise theirs, in /usr, by other means. A build that does not say how it was configured is not
    called slow. `tools/interpreter.py` measures instead, because it has others to compare with.
    """
    return bool(configured) and "--enable-optimizations" not in configured and prefix != "/usr"
