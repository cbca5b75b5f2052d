"""What can go wrong with one cell; the rest of the run goes on."""

from __future__ import annotations


class LabError(Exception):
    """One clear line for the person who reads it."""


class Absent(LabError):
    """A server, a tool or a feature that is not there: its cells are marked, all at once."""
