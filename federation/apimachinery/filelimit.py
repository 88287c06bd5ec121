"""The process's limit of open files: each connection needs one. Usual soft limits are far below what a server needs."""

import resource
import sys


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


def file_limit() -> int:
    """Return how many files the process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft in (resource.RLIM_INFINITY, -1) else soft


def files_needed(members: int) -> int:
    """Return how many files a control plane needs: connections of 8,192 clients, those to members, and files."""
    return 10_240 + 16 * members


def file_limit_problem(limit: float, needed: int) -> str:
    """Return what is wrong with a limit of open files, "" if it is enough."""
    if limit in (resource.RLIM_INFINITY, -1) or limit >= needed:
        return ""
    return f"the control plane may open {limit:,.0f} files, and connections of many clients need {needed:,}"
