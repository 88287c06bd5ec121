"""A part of the federation's own HTTP API that a leaf feature adds."""

from typing import Protocol

from fastapi import FastAPI


class View(Protocol):
    """Answers requests below `/federation/v1` from the caches of the controllers."""

    @property
    def paths(self) -> frozenset[str]:
        """The paths that it authorizes by itself; other ones are authorized as non-resource URLs."""
        ...

    def add_routes(self, web: FastAPI) -> None:
        """Add its paths to the application."""
        ...
