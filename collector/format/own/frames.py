"""Frames of the recorder in stacks of the program.

The recorder calls the program (`memboard run`), is called around its operators, and
wraps its functions, so its frames are in stacks of the program's memory and operators.
They are nobody's line to look at. This is the one list of them; whoever reads stacks
leaves them out by it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Role: TypeAlias = Literal["", "passes", "works", "starts"]
"""Empty: it is not ours. passes: it calls what is the program's or torch's. works: what
is allocated in it is the recorder's. starts: it has started the program, and all frames
around it have started it."""

RECORDER: Final = "MemBoard's recorder"
"""What stands for a stack of the recorder's own work."""

DISPATCH_MODE: Final = "PythonDispatchMode"
"""torch's name for the call of any dispatch mode, around each operator: the recorder has one
while it tracks modules, and a program may have others."""

UNPROVED_MODE: Final = f"{DISPATCH_MODE} (of MemBoard's modules, or of the program)"
"""What it is called in a trace that does not say whose it is."""

_STARTS: Final = "running/program.py"
_PASSES: Final = re.compile(
    r"(?:hooks|running|integrations)/|modules/(?:dispatch|stack)\.py|steps/loader\.py"
    r"|functions/(?:saved_tensors|user_hooks)\.py|core/guard\.py"
    r"|sources/device/peaks\.py|steps/spans/span\.py"
)
_OURS: Final = re.compile(r"(?:^|[/\\])memboard[/\\]collector[/\\](\w[\w/\\]*\.py)$")


def role_of(filename: str) -> Role:
    """What a frame of this file does there.

    The file is known by its whole path inside the package: a program may have a package
    `memboard` of its own.
    """
    match = _OURS.search(filename)
    if match is None:
        return ""
    module = match[1].replace("\\", "/")
    if module not in _files():
        return ""
    if module == _STARTS:
        return "starts"
    return "passes" if _PASSES.match(module) else "works"


@cache
def _files() -> frozenset[str]:
    """The package's files, relative to it."""
    package = Path(__file__).parents[2]
    return frozenset(
        path.relative_to(package).as_posix() for path in package.rglob("*.py")
    ) - {"__init__.py"}


def program_frames(filenames: Sequence[str]) -> list[int]:
    """Places of the frames in a stack that are not ours.

    Args:
        filenames: of the frames, the innermost first.
    """
    places = []
    for place, filename in enumerate(filenames):
        role = role_of(filename)
        if role == "starts":
            break
        if not role:
            places.append(place)
    return places
