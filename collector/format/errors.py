"""Errors of bytes on disk.

FormatError            the base: catch this to survive any input
├── CorruptError       bytes that are not what they claim to be
└── VersionError       written by a MemBoard of another format than the one reading
"""

from __future__ import annotations


class FormatError(Exception):
    """Bytes that cannot be decoded; the message says what and where."""


class CorruptError(FormatError):
    """Bytes that are not what they claim to be: torn, flipped or foreign."""


class VersionError(FormatError):
    """A format version that this installation does not read."""
