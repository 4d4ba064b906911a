"""Worker, rank and cycle of a trace's file, out of its name and its folders'.

What is understood, with who writes it so:

host_123.1700000000000.pt.trace.json       torch's tensorboard_trace_handler; also .gz
rank3.12.pt.trace.json                     Composer; also rank3.ba12.pt.trace.json
ep0-ba5-rank3.json                         Composer's JSONTraceHandler, below `rank_3/`
merged_trace.json, profiler_traces.json    the same, of all ranks
rank3_trace.json.gz                        torchtitan: below `iteration_40/`
rank-0.json.gz, trace_rank_0.json          HolisticTraceAnalysis, torch.profiler by hand
profile_3.json                             accelerate's ProfileKwargs: of rank 3
1757000000.5-TP-3-DP-0-EP-3.trace.json.gz  SGLang; with -DECODE and -EXTEND by stage
fit-0-[Strategy]X.training_step.17.pt.trace.json  Lightning: stage and local rank
dp0_pp0_tp1_ep1_rank1.17.pt.trace.json.gz  vLLM; before, llm-1f2e-rank-1 of the same
rank-3.json.gz                             Megatron-LM, below `torch_profile/`
trace_view.json                            torch_npu, below `host_77_20260101120000123_ascend_pt/`
memory_timeline.raw.json.gz, .html         export_memory_timeline

Files of other names that begin as traces do are found all the same: see `heads`.

Cycles are ordered as numbers. Times of 10, 13, 16 and 19 digits are seconds to
nanoseconds since 1970, whatever else the same worker wrote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.formats.file_listing import Likelihood

MAX_NAME: Final = 255
_TORCH: Final = re.compile(
    r"(?P<worker>.*?)(?:\.(?P<time>\d{1,30}))?\.pt\.trace\.json(?:\.gz)?", re.DOTALL
)
_BATCH: Final = re.compile(r"(?P<worker>.*)\.ba(?P<batch>\d{1,15})", re.DOTALL)
_COMPOSER: Final = re.compile(
    r"ep(?P<epoch>\d{1,9})-ba(?P<batch>\d{1,15})-rank(?P<rank>\d{1,7})\.json(?:\.gz)?"
)
_SGLANG: Final = re.compile(
    r"(?:(?P<id>.*?)-)?(?P<place>TP-(?P<tp>\d{1,7})(?:-DP-(?P<dp>\d{1,7}))?"
    r"(?:-PP-(?P<pp>\d{1,7}))?(?:-EP-\d{1,7})?)"
    r"(?:-(?P<stage>[A-Z_]{2,20}))?\.trace\.json(?:\.gz)?"
)
_SGLANG_TIME: Final = re.compile(r"(?:.*-)?(?P<time>\d{1,30})(?:\.\d{1,30})?")
_LIGHTNING: Final = re.compile(
    r"(?P<stage>sanity_check|fit|validation|validate|test|predict)(?P<rest>-.*)?",
    re.DOTALL,
)
_STAGES: Final = (
    "sanity_check",
    "fit",
    "validation",
    "validate",
    "test",
    "predict",
    "EXTEND",
    "PREFILL",
    "DECODE",
)
"""In the order in which a process runs them: it has one profiler for each."""
_LIGHTNING_ACTION: Final = re.compile(
    r"-?\[[^\]]*\][^-]*|-(?:run_)?\w*_(?:step|batch)\b"
)
"""`[Strategy]DDPStrategy.training_step`: what the profiler was around."""
_ACCELERATE: Final = re.compile(r"profile_(?P<rank>\d{1,7})\.json(?:\.gz)?")
_LIKELY: Final = re.compile(
    r"\d|profil|torch|kineto|chrome|merged|timeline", re.IGNORECASE
)
_PROFILERS: Final = re.compile(r"profil|torch|kineto|chrome|timeline", re.IGNORECASE)
_JSON: Final = re.compile(r"\.json(?:\.gz)?$", re.IGNORECASE)
_TIMELINE: Final = re.compile(
    r"mem(?:ory)?[-_.]?timeline.*\.(?:json|json\.gz|raw\.gz|html)$|\.raw\.json\.gz$",
    re.IGNORECASE,
)
_TRACE: Final = re.compile(r"(?<![a-z])traces?(?![a-z])", re.IGNORECASE)
_ONLY_RANK: Final = re.compile(r"rank[-_]?\d{1,7}", re.IGNORECASE)
_RANK: Final = re.compile(
    r"(?:(?P<of>[a-z]+)[-_. ])?(?<![a-z])rank[-_= ]?(?P<rank>\d{1,7})(?!\d)",
    re.IGNORECASE,
)
_OTHER_RANKS: Final = frozenset(
    {"local", "node", "group", "tp", "pp", "dp", "ep", "cp"}
)
_WORKER: Final = re.compile(r"(?:worker|host)[-_]?(?P<rank>\d{1,5})", re.IGNORECASE)
_ITERATION: Final = re.compile(
    r"(?:global[-_]?)?(?:step|iteration|iter)[-_=]?(?P<number>\d{1,15})", re.IGNORECASE
)
_ASCEND: Final = re.compile(r"(?P<worker>.+)_(?P<time>\d{14,20})_ascend_pt")
_UNITS: Final = {10: 10**9, 13: 10**6, 16: 10**3, 19: 1}
"""By its digits: nanoseconds of one, of a time since 1970."""
_MAX_WORKER: Final = 120


@dataclass(frozen=True, slots=True)
class TraceName:
    """What names say of one file."""

    worker: str
    """Who wrote it; files of one worker are its cycles."""
    order: tuple[int, int] | None = None
    """Where it stands among the worker's; None where no name says it."""
    rank: int | None = None
    is_timeline: bool = False
    """Whether it is what `export_memory_timeline` wrote."""


def is_trace(file_name: str) -> bool:
    """Whether a file of this base name is taken for a trace or a memory timeline."""
    if len(file_name) > MAX_NAME or "." not in file_name:
        return False
    if (
        _TORCH.fullmatch(file_name)
        or _COMPOSER.fullmatch(file_name)
        or _TIMELINE.search(file_name)
    ):
        return True
    stem = _stem(file_name)
    if stem is None:
        return False
    return bool(_TRACE.search(stem) or _ONLY_RANK.fullmatch(stem))


def likelihood(file_name: str, *, is_remote: bool = False) -> Likelihood:
    """Whether a file of this base name holds a trace or a memory timeline.

    At a store a look costs much; files of settings seldom have names that are worth it.
    """
    if is_trace(file_name):
        return "yes"
    if len(file_name) > MAX_NAME or _stem(file_name) is None:
        return "no"
    return "no" if is_remote and not _LIKELY.search(file_name) else "maybe"


def has_words(file_name: str) -> bool:
    """Whether a base name that does not tell has a word that profilers put there."""
    stem = _stem(file_name) if len(file_name) <= MAX_NAME else None
    return stem is not None and _PROFILERS.search(stem) is not None


def parse_names(file_name: str, folders: Sequence[str] = ()) -> TraceName:
    """What a file's base name says, and for the rest the folders', the nearest first.

    `folders` are base names from the outermost to the innermost.
    """
    file_name = file_name[:MAX_NAME]
    parsed = _parse(file_name)
    worker, rank, order = parsed.worker, parsed.rank, parsed.order
    for folder in reversed(folders):
        ascend = _ASCEND.fullmatch(folder[:MAX_NAME])
        if ascend is not None:
            worker, order = _shown(ascend["worker"]), (0, int(ascend["time"]))
        rank = _rank(folder) if rank is None else rank
        number = _ITERATION.search(folder[:MAX_NAME])
        if order is None and number is not None:
            order = (0, int(number["number"]))
    return TraceName(worker, order, rank, parsed.is_timeline)


def _parse(file_name: str) -> TraceName:
    composer = _COMPOSER.fullmatch(file_name)
    if composer is not None:
        rank = int(composer["rank"])
        place = (int(composer["epoch"]), int(composer["batch"]))
        return TraceName(f"rank{rank}", place, rank)
    accelerate = _ACCELERATE.fullmatch(file_name)
    if accelerate is not None:
        rank = int(accelerate["rank"])
        return TraceName(f"rank{rank}", None, rank)
    sglang = _SGLANG.fullmatch(file_name)
    if sglang is not None:
        return _parse_sglang(sglang)
    is_timeline = _TIMELINE.search(file_name) is not None
    torch = _TORCH.fullmatch(file_name)
    if torch is None:
        stem = _stem(file_name) or file_name
        return TraceName(_shown(stem), None, _rank(stem), is_timeline)
    worker, time = torch["worker"], torch["time"]
    order = None if time is None else _order(time)
    batch = _BATCH.fullmatch(worker) if order is None else None
    if batch is not None:
        worker, order = batch["worker"], (0, int(batch["batch"]))
    lightning = _LIGHTNING.fullmatch(worker)
    if lightning is not None:
        # One process writes files of every stage: they are its cycles.
        worker = _LIGHTNING_ACTION.sub("", lightning["rest"] or "").strip("-")
        worker = worker or "lightning"
        order = (0, _STAGES.index(lightning["stage"])) if order is None else order
    return TraceName(_shown(worker), order, _rank_of_worker(worker), is_timeline)


def _parse_sglang(match: re.Match[str]) -> TraceName:
    """Its TP rank is the global one, but for pipelines, and for replicas of the data."""
    tensor_rank, data_rank = int(match["tp"]), int(match["dp"] or 0)
    is_global = not int(match["pp"] or 0) and data_rank <= tensor_rank
    rank = tensor_rank if is_global else None
    time = _SGLANG_TIME.fullmatch(match["id"] or "")
    order = _order(time["time"]) if time else None
    if match["stage"]:
        kind, number = order or (0, 0)
        order = (kind, number + _stage_place(match["stage"]))
    worker = match["place"] if rank is None else f"rank{rank}"
    return TraceName(worker, order, rank)


def _stage_place(stage: str) -> int:
    return _STAGES.index(stage) if stage in _STAGES else len(_STAGES)


def _order(digits: str) -> tuple[int, int]:
    """Times after plain numbers, and all times in nanoseconds."""
    unit = _UNITS.get(len(digits))
    number = int(digits)
    return (0, number) if unit is None else (1, number * unit)


def _stem(file_name: str) -> str | None:
    match = _JSON.search(file_name)
    return None if match is None or match.start() == 0 else file_name[: match.start()]


def _rank(text: str) -> int | None:
    """The global rank that a name tells."""
    for match in _RANK.finditer(text[:MAX_NAME]):
        if (match["of"] or "").lower() not in _OTHER_RANKS:
            return int(match["rank"])
    return None


def _rank_of_worker(worker: str) -> int | None:
    """The rank of a worker: `rank3`, or `worker3` and `host_3` as examples have it."""
    rank = _rank(worker)
    if rank is None:
        match = _WORKER.fullmatch(worker)
        rank = None if match is None else int(match["rank"])
    return rank


def _shown(worker: str) -> str:
    return printable(worker[:_MAX_WORKER]) or "default"
