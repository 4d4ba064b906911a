"""Rank, step and label of a snapshot's file, out of its name and its folders'.

Everybody who dumps snapshots names them in a way of their own. What is understood, with
who writes it so:

snapshot.pickle                             torch's own examples
memory_snapshot_rank3_step40.pickle         scripts; also .pkl, .gz, .pickle.203439
rank3_memory_snapshot.pickle                torchtitan, torchtune: below `iteration_40/`
000003_step_40.pickle                       torchtitan: below `step_000000000040_exit/`
snapshot.pickle                             torchtnt: below `step_40_rank3/`, `oom_rank3/`
rank3.40.memory_snapshot.pickle             Composer; rank3_oom_snapshot.pickle
oom_rank-3_snapshot.pickle                  Megatron, slime, miles
snapshot_rank03_p0d1c0t0.pickle             Megatron with its parallel dimensions
memory_snapshot_time17.5_rank3_x.pickle     slime
snapshot_rank3_pid77.pickle                 verl: below a folder named by the time
cuda_alloc_rank_3.training_step.2.end.pickle  MemProfiler: the end of its second call

`rank` counts where it can mean the global one: not behind local, node, tp, lora ...
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from memboard.collector.format.sizes import printable
from memboard.tb_plugin.formats.memprofiler.names import parse_file_name, split_phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.tb_plugin.formats.file_listing import Likelihood

Context: TypeAlias = Literal["start", "end", ""]

MAX_NAME: Final = 255
"""No file's name is longer."""
_MAX_LABEL: Final = 120
_MAX_NUMBER: Final = 2**53
"""Largest number that the page represents exactly."""

# Downloads and caches put a few hex digits behind a name.
_PICKLE: Final = re.compile(
    r"\.(?:pickle|pkl)(?:\.[0-9a-f]{4,16})?(?:\.gz)?$", re.IGNORECASE
)
_JSON: Final = re.compile(r"\.json(?:\.gz)?$", re.IGNORECASE)
_SURE: Final = re.compile(
    r"(?:memory|mem|cuda|gpu|oom|alloc(?:ator)?)[\w.-]*snap_?shot"
    r"|^(?:dump_)?snapshot$",
    re.IGNORECASE,
)
"""Stems that nothing but snapshots of memory have. Plain `snapshot` is what some give to
checkpoints: `network-snapshot-000200.pkl`."""
_SNAPSHOT: Final = re.compile(r"snap_?shot", re.IGNORECASE)
"""With a rank it is no checkpoint, either."""
_JSON_WORDS: Final = re.compile(r"snap_?shot|memory|cuda|alloc|oom", re.IGNORECASE)
"""Without one of these no JSON file is looked into: logdirs are full of them."""

_RANK: Final = re.compile(
    r"(?:(?P<of>[a-z]+)(?P<apart>[-_. ]?))?rank[-_= ]?-?(?P<rank>\d{1,7})(?!\d)",
    re.IGNORECASE,
)
_OTHER_RANKS: Final = frozenset(
    {"local", "node", "machine", "host", "group", "lora", "low"}
    | {"tp", "pp", "dp", "ep", "cp", "sp", "mp"}
)
_STEP: Final = re.compile(
    r"(?<![a-z])(?:global[-_]?)?(?:step|iteration|iter)[-_= ]?(?P<step>\d{1,15})(?!\d)",
    re.IGNORECASE,
)
_WORLD: Final = re.compile(
    r"(?<![a-z])world(?:[-_]?size)?[-_= ]?(?P<world>\d{1,7})(?!\d)", re.IGNORECASE
)
_WHOLE: Final = (
    # rank.batch.memory_snapshot, Composer's names of traces for snapshots, and
    # rank_step_step, where words are few.
    re.compile(r"rank(?P<rank>\d{1,7})\.(?:ba)?(?P<step>\d{1,15})\.memory_snapshot"),
    re.compile(
        r"ep\d{1,9}-ba(?P<step>\d{1,15})-rank(?P<rank>\d{1,7})\.memory_snapshot"
    ),
    re.compile(r"(?P<rank>\d{4,7})_step_(?P<step>\d{1,15})"),
)
_FLAG: Final = re.compile(r"(?<![a-z])(?:oom|exit)(?![a-z])", re.IGNORECASE)
_GENERIC: Final = re.compile(
    r"(?<![a-z])(?:memory|mem|cuda|gpu|snapshots?|dump)(?![a-z])", re.IGNORECASE
)
_NUMBERS: Final = re.compile(r"[0-9]+")
_GAPS: Final = re.compile(r"[-_.= ]{2,}")
"""Separators left between words that were taken out."""

_FOLDER_PART: Final = (
    r"(?:global[-_]?)?(?:step|iteration|iter)[-_=]?\d{1,15}|rank[-_=]?-?\d{1,7}"
)
_LAYOUT: Final = re.compile(
    rf"(?:oom[-_])?(?:{_FOLDER_PART})(?:[-_.](?:{_FOLDER_PART}))*(?:[-_]exit)?"
    r"|.+_\d{14,20}_ascend_pt|ASCEND_PROFILER_OUTPUT",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SnapshotName:
    """What names say of one file."""

    rank: int | None = None
    step: int | None = None
    world_size: int | None = None
    label: str = ""
    """What the name says besides: `oom`, `exit`, the user's own words."""
    function: str = ""
    """The call it was taken around, of MemProfiler's files; empty: by hand."""
    phase: str = ""
    iteration: int = 0
    """1-based number of that call; 0: by hand."""
    context: Context = ""
    """The side of that call."""


def likelihood(file_name: str, *, is_remote: bool = False) -> Likelihood:
    """Whether a file of this base name holds an allocator snapshot."""
    del is_remote
    if len(file_name) > MAX_NAME:
        return "no"
    stem = stem_of(file_name)
    if stem is None:
        return "no"
    if _SURE.search(stem) or any(whole.fullmatch(stem) for whole in _WHOLE):
        return "yes"
    if _SNAPSHOT.search(stem) and _RANK.search(stem):
        return "yes"
    return "no" if _JSON.search(file_name) and not _JSON_WORDS.search(stem) else "maybe"


def is_pickle(file_name: str) -> bool:
    """Whether a base name ends as those of pickles do."""
    return _PICKLE.search(file_name) is not None


def stem_of(file_name: str) -> str | None:
    """The name without its endings; None where snapshots have no such ending."""
    match = _PICKLE.search(file_name) or _JSON.search(file_name)
    return None if match is None or match.start() == 0 else file_name[: match.start()]


def alike(names: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Those of `names` that differ from one of `taken` in their numbers alone.

    So do files of other ranks and steps that one program wrote; other programs' files
    in the same folder do not.
    """
    wanted = list(names)
    if not wanted:
        return []
    patterns = {_NUMBERS.sub("#", name) for name in taken}
    return [name for name in wanted if _NUMBERS.sub("#", name) in patterns]


def is_layout(folder: str) -> bool:
    """Whether a directory's base name only tells a rank or a step of what is in it.

    torch_npu makes two for each rank and cycle: `host_77_20260101120000123_ascend_pt` with
    `ASCEND_PROFILER_OUTPUT`.
    """
    return len(folder) <= MAX_NAME and _LAYOUT.fullmatch(folder) is not None


def parse_names(file_name: str, folders: Sequence[str] = ()) -> SnapshotName:
    """What a file's base name says, and for the rest the folders', the nearest first.

    `folders` are base names from the outermost to the innermost; those that are no
    layout's tell nothing.
    """
    snapshot_name = _memprofilers(file_name) or _parse(
        (stem_of(file_name) or file_name)[:MAX_NAME]
    )
    for folder in reversed(folders):
        outer = _of_folder(folder)
        if outer is None:
            continue
        snapshot_name = replace(
            snapshot_name,
            rank=outer.rank if snapshot_name.rank is None else snapshot_name.rank,
            step=outer.step if snapshot_name.step is None else snapshot_name.step,
            label=_joined(snapshot_name.label, outer.label),
        )
    return snapshot_name


def _memprofilers(dump_name: str) -> SnapshotName | None:
    """A capture around a call, or by hand where ours says no side of one."""
    file_name = parse_file_name(dump_name)
    if file_name is None or file_name.kind != "history":
        return None
    function, phase = split_phase(file_name.function)
    if not file_name.context:
        return SnapshotName(
            file_name.rank, file_name.iteration, label=function, phase=phase
        )
    context: Context = "start" if file_name.context == "start" else "end"
    return SnapshotName(
        file_name.rank,
        function=function,
        phase=phase,
        iteration=file_name.iteration,
        context=context,
    )


@lru_cache(maxsize=256)
def _of_folder(folder_name: str) -> SnapshotName | None:
    """What a layout's folder says: of all the files in it."""
    return _parse(folder_name) if is_layout(folder_name) else None


def _parse(stem: str) -> SnapshotName:
    for whole in _WHOLE:
        match = whole.fullmatch(stem)
        if match is not None:
            return SnapshotName(int(match["rank"]), _step(match["step"]))
    rank, spans = _rank(stem)
    step = world = None
    for match in _STEP.finditer(stem):
        step = _step(match["step"]) if step is None else step
        spans.append(match.span())
    match = _WORLD.search(stem)
    if match is not None:
        world = int(match["world"])
        spans.append(match.span())
    return SnapshotName(rank, step, world or None, _label(stem, spans))


def _rank(stem: str) -> tuple[int | None, list[tuple[int, int]]]:
    """The global rank, and where it stands."""
    for match in _RANK.finditer(stem):
        of, apart = (match["of"] or "").lower(), match["apart"]
        # Letters that touch it make it another word, unless it is a word we know.
        if of in _OTHER_RANKS or (of and not apart):
            continue
        start = match.start() if not of else match.start("of") + len(of)
        return int(match["rank"]), [(start, match.end())]
    return None, []


def _step(digits: str) -> int | None:
    number = int(digits)
    return number if number <= _MAX_NUMBER else None


def _label(stem: str, spans: list[tuple[int, int]]) -> str:
    """What is left of a name once rank, step and the usual words are taken out."""
    rest, end_before = [], 0
    for start, end in sorted(spans):
        rest.append(stem[end_before:start])
        end_before = max(end_before, end)
    rest.append(stem[end_before:])
    text = _GENERIC.sub("_", "_".join(rest))
    kept = _GAPS.sub("_", text).strip("-_.= ")
    return printable(kept)[:_MAX_LABEL]


def _joined(label: str, outer: str) -> str:
    """A folder's flags behind a file's own words."""
    flags = [flag for flag in _FLAG.findall(outer) if flag not in label]
    return "_".join(filter(None, (label, *flags)))
