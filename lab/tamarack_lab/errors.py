"""Errors of a cell; the rest of the run continues."""

from __future__ import annotations


class LabError(Exception):
    """A one-line error for the user."""


class Absent(LabError):
    """A missing server, tool or feature: all its cells are marked."""
