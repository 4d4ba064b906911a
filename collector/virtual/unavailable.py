"""Reasons for which a virtual GPU cannot be had here."""

from __future__ import annotations


class VirtualGpuUnavailable(Exception):  # noqa: N818  # a state of the machine
    """One sentence: what is missing, and the command that helps."""
