"""The process's limit of open files: each connection needs one. Usual soft limits are far below what a server needs."""

import resource


def raise_file_limit() -> int:
    """Raise the soft limit to the hard one and return it. Only the soft limit counts, and any process may raise it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # some systems have a lower maximum than the hard limit
        return soft
    return hard


def file_limit_problem(limit: int, needed: int) -> str:
    """Return what is wrong with a limit of open files, "" if it is enough."""
    if limit in (resource.RLIM_INFINITY, -1) or limit >= needed:
        return ""
    return (
        f"the process may open {limit} files; connections of many clients need {needed}: raise LimitNOFILE or ulimit -n"
    )
