"""The docstrings of our models' fields, which become descriptions in the generated schemas.

A docstring of a field is no attribute of its class: it is read from the module's source. Pydantic can do that, for each
class while its module is imported, which took a quarter of the time of all imports. `field_docs` parses a module once,
when a schema is generated.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from pydantic import BaseModel


def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of the model's fields by name; the class that declares a field last documents it."""
    documented: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        docs = _docs_of(owner.__module__).get(owner.__qualname__, {}) if issubclass(owner, BaseModel) else {}
        for name in inspect.get_annotations(owner):
            documented.pop(name, None)
            if name in docs:
                documented[name] = docs[name]
    return {name: text for name, text in documented.items() if name in model.model_fields}


@cache
def _docs_of(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of a module's fields, by class and field."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_documented(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _documented(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, following in pairwise(node.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            match following:
                case ast.Expr(ast.Constant(str(text))):
                    yield statement.target.id, inspect.cleandoc(text)
