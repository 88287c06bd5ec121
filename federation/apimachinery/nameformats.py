"""Names, label keys and label values: Kubernetes' rules and messages (k8s.io/apimachinery/pkg/util/validation)."""

import re

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + r")*"
_DNS1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = "(" + _QUALIFIED + ")?"

_label_re = re.compile(_LABEL)
_subdomain_re = re.compile(_SUBDOMAIN)
_dns1035_re = re.compile(_DNS1035)
_qualified_re = re.compile(_QUALIFIED)
_label_value_re = re.compile(_LABEL_VALUE)

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    f" an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_DNS1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    f" '{_DNS1035}')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    f" character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_QUALIFIED_KEY_TEXT = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with"
    " an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    f" '{_QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    f" '{_LABEL_VALUE}')"
)


def dns1123_label(name: str) -> list[str]:
    """Return the problems of a namespace-like name: at most 63 characters, no dots."""
    problems = _check(name, 63, _label_re, _LABEL_TEXT)
    # A valid subdomain that is no label has dots.
    return (
        ["must not contain dots" if text is _LABEL_TEXT else text for text in problems] if _has_dots(name) else problems
    )


def _has_dots(name: str) -> bool:
    return "." in name and _subdomain_re.fullmatch(name) is not None


def dns1123_subdomain(name: str) -> list[str]:
    """Return the problems of an ordinary object name: at most 253 characters."""
    return _check(name, 253, _subdomain_re, _SUBDOMAIN_TEXT)


def dns1035_label(name: str) -> list[str]:
    """Return the problems of a Service's name."""
    return _check(name, 63, _dns1035_re, _DNS1035_TEXT)


_SEGMENT_LENGTH_MAX = 1024
"""Kubernetes has only etcd's request limit; this limit keeps the store's keys short."""


def path_segment(name: str) -> list[str]:
    """Return the problems of a name that must only fit into a URL path, as RBAC names do."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    if len(name) > _SEGMENT_LENGTH_MAX:
        return [f"must be no more than {_SEGMENT_LENGTH_MAX} characters"]
    return [f"may not contain '{sign}'" for sign in ("/", "%", "\0") if sign in name]


def qualified_name(key: str) -> list[str]:
    """Return the problems of a label or annotation key: an optional DNS prefix, `/`, and a name."""
    prefix, slash, name = key.rpartition("/")
    problems: list[str] = []
    if slash:
        if "/" in prefix:
            return [_QUALIFIED_KEY_TEXT]
        if not prefix:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in dns1123_subdomain(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 characters")
    if not _qualified_re.fullmatch(name):
        problems.append(_QUALIFIED_TEXT)
    return problems


def label_value(value: str) -> list[str]:
    """Return the problems of a label's value."""
    return _check(value, 63, _label_value_re, _LABEL_VALUE_TEXT)


def port_name(name: str) -> list[str]:
    """Return the problems of a container port's name (IANA_SVC_NAME)."""
    problems = []
    if len(name) > 15:
        problems.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def _check(text: str, length_max: int, pattern: re.Pattern[str], message: str) -> list[str]:
    if len(text) <= length_max and pattern.fullmatch(text):
        return []
    problems = [f"must be no more than {length_max} characters"] if len(text) > length_max else []
    if not pattern.fullmatch(text):
        problems.append(message)
    return problems
