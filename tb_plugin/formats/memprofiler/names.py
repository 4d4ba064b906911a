"""Names of MemProfiler's files, and keys of its snaps."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memboard.tb_plugin.formats.file_listing import Likelihood

FileKind: TypeAlias = Literal["yaml", "pickle", "report", "modules", "history"]

MAX_NAME: Final = 255
"""No file's name is longer, and no function's name is believed to be."""

_STATS = re.compile(r"rank_(\d{1,7})_memory_stats\.(yaml|pickle)")
_MODULES = re.compile(r"rank_(\d{1,7})_fsdp_memory_stats\.yaml")
_REPORT = re.compile(r"fsdp_mem_rank_(\d{1,7})_(.+)_(\d{1,12})\.log")
_HISTORY = re.compile(
    r"cuda_alloc_rank_(\d{1,7})\.(.+)\.(\d{1,12})(?:\.(start|end))?\.pickle"
)
_BEGINNINGS: Final = ("rank_", "fsdp_mem_rank_", "cuda_alloc_rank_")
_SNAP = re.compile(r"(\d{1,7})\.(.+)\.(\d{1,12})\.(start|end)", re.DOTALL)


TRAIN_PHASE: Final = "train"
"""MemProfiler knows no phases: everything is in the one that stands where none is said."""

_PHASES: Final = frozenset({"val", "validation", "eval", "test", "predict"})
"""Behind which a dot and the function stand, in what `memboard export` writes."""


class FunctionKey(NamedTuple):
    """One function in one phase."""

    function: str
    phase: str


@dataclass(frozen=True, slots=True)
class SnapKey:
    """One moment: the start or the end of one call of a function, on one rank."""

    rank: int
    function: str
    iteration: int  # 1-based
    context: Literal["start", "end"]

    @property
    def text(self) -> str:
        """As MemProfiler writes it, e.g. `0.training_step.2.end`."""
        return f"{self.rank}.{self.function}.{self.iteration}.{self.context}"


@dataclass(frozen=True, slots=True)
class FileName:
    """The parts of a file's name; what its kind does not have is empty or 0."""

    kind: FileKind
    rank: int
    function: str = ""
    iteration: int = 0
    context: str = ""


def parse_file_name(file_name: str) -> FileName | None:
    """The parts of a base name; None where MemProfiler writes no such file."""
    if not file_name.startswith(_BEGINNINGS):  # one of thousands, elsewhere
        return None
    if len(file_name) > MAX_NAME or not file_name.isprintable():
        return None
    match = _STATS.fullmatch(file_name)
    if match is not None:
        return FileName("yaml" if match[2] == "yaml" else "pickle", int(match[1]))
    match = _MODULES.fullmatch(file_name)
    if match is not None:
        return FileName("modules", int(match[1]))
    match = _REPORT.fullmatch(file_name)
    if match is not None:
        return FileName("report", int(match[1]), match[2], int(match[3]))
    match = _HISTORY.fullmatch(file_name)
    if match is not None:
        context = match[4] or ""  # ours leaves it out where `rec.snapshot` was called
        return FileName("history", int(match[1]), match[2], int(match[3]), context)
    return None


def likelihood(file_name: str, *, is_remote: bool = False) -> Likelihood:
    """Whether a file of this base name is one of MemProfiler's."""
    del is_remote
    return "no" if parse_file_name(file_name) is None else "yes"


def parse_snap_key(text: str) -> SnapKey | None:
    """The parts of `rank.function.iteration.start|end`; None where it is no such key.

    The function may hold dots: rank and iteration are taken from the ends.
    """
    match = _SNAP.fullmatch(text) if len(text) <= MAX_NAME else None
    if match is None:
        return None
    context: Literal["start", "end"] = "start" if match[4] == "start" else "end"
    return SnapKey(int(match[1]), match[2], int(match[3]), context)


def split_phase(qualified: str) -> FunctionKey:
    """Function and phase of a name in a key or a file's name."""
    phase, _, function = qualified.partition(".")
    if function and phase in _PHASES:
        return FunctionKey(function, phase)
    return FunctionKey(qualified, TRAIN_PHASE)


def names_of(keys: Iterable[FunctionKey]) -> Mapping[FunctionKey, str]:
    """What functions are called in keys and in files' names.

    MemProfiler knows no phases: under Lightning they have functions of their own, such as
    `validation_step`. So a function of a single phase has its plain name, as there. One
    of several phases counts its calls in each of them, so two calls had one name: all
    phases but train stand before it then, e.g. `val.step`.
    """
    unique = set(keys)
    num_phases = Counter(key.function for key in unique)
    return {
        key: key.function
        if num_phases[key.function] == 1
        else joined_phase(key.function, key.phase)
        for key in unique
    }


def joined_phase(function: str, phase: str) -> str:
    """The inverse of `split_phase`: other phases than train stand before the function."""
    return function if phase == TRAIN_PHASE else f"{phase}.{function}"
