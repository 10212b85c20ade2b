"""Checking a call's arguments against the tool's own schema, with field paths that a model can act on."""

from __future__ import annotations

from ._problem import Problem, problems_text
from ._validate import validate

__all__ = ["Problem", "problems_text", "validate"]
