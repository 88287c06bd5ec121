"""Load YAML that others have written: kubeconfigs and setting files. Pure.

libyaml composes by recursion and ends the process, without an exception, for text of many levels. So the events are
counted before, and a text that is too deep is an error like any other that is no YAML.
"""

from typing import Any

import yaml

from federation.apimachinery.jsonsize import DEPTH_MAX


class TooDeepError(yaml.YAMLError):
    """Text of YAML with too many levels."""


def load_yaml(text: str | bytes) -> Any:
    """Return the value of one document; yaml.YAMLError for what is no YAML, TooDeepError for too many levels."""
    check_depth(text)
    return yaml.load(text, Loader=yaml.CSafeLoader)


def check_depth(text: str | bytes) -> None:
    """Raise TooDeepError for too many levels, yaml.YAMLError for no YAML. Events are read without recursion."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise TooDeepError(f"it has more than {DEPTH_MAX} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
