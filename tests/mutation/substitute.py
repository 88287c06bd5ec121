"""A pytest plugin: the module at MUTATED_PATH is imported with the text of the file MUTATED_SOURCE."""

import os
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

_load = SourceFileLoader.get_code


def _get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
    if loader.get_filename(fullname) != os.environ["MUTATED_PATH"]:
        return _load(loader, fullname)
    code: CodeType = compile(Path(os.environ["MUTATED_SOURCE"]).read_bytes(), os.environ["MUTATED_PATH"], "exec")
    return code


SourceFileLoader.get_code = _get_code  # type: ignore[method-assign]  # this process exists for the mutated module
