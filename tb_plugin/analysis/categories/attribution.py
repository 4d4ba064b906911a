"""The category of each allocation (parameter, gradient, activation ...), with evidence.

First by what the training recorded: the tensors it knew at the end, those that it
annotated while they were there, and other allocations of their stacks. Then, as for snapshots of others, by rules about stacks and
lives (`attribution_rules`, the first that fits decides). What a life that was cut short
would have been is told by others of its stack, if nearly all their bytes were the same.
Where no rule fits it is `other`: nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.memory import CATEGORIES, FOLDS_INTO
from memboard.collector.format.snapshots.tags import annotation_data
from memboard.tb_plugin.analysis.allocator.lifetimes import BEFORE
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.marks import MODULE, runs_autograd
from memboard.tb_plugin.analysis.categories.phases import FORWARD
from memboard.tb_plugin.analysis.categories.rules import OUTSIDE, RULES, facts_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.categories.rules import LifeFacts
    from memboard.tb_plugin.analysis.snapshots.extras import Tensors


OTHER: Final = CATEGORIES.index("other")

NEARLY_ALL: Final = 0.9
"""Share of the bytes of a stack that has to be of one category to speak for the rest."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Columns over all lives of a device."""

    category: npt.NDArray[np.int8]
    # Index in `memboard.collector.format.memory.CATEGORIES`
    evidence: npt.NDArray[np.int8]  # Index in `EVIDENCE`
    tensor: Ints
    """Row of `Snapshot.tensors`; NOTHING: none was known there."""


NOTHING_FITS: Final = "no rule fits"
RECORDED: Final = "recorded as a tensor"
ANNOTATED: Final = "annotated as a tensor"
OF_RECORDED: Final = "as a recorded tensor of the same stack"
AS_OTHERS: Final = "as nearly all of the same stack that were not cut short"
UNDER_WAY: Final = "made in a forward that was cut short"
BESIDE: Final = "made right beside an input by the same function, and held as long"

EVIDENCE: Final = (
    NOTHING_FITS,
    RECORDED,
    ANNOTATED,
    OF_RECORDED,
    AS_OTHERS,
    UNDER_WAY,
    BESIDE,
    *(rule_text for rule_text, _, _ in RULES),
)
"""Evidence for a category, in words."""

_INPUT: Final = CATEGORIES.index("input")
_PARAMETERS: Final = tuple(
    code for code, name in enumerate(CATEGORIES) if FOLDS_INTO[name] == "param"
)
_MAX_BESIDE: Final = 16
"""Tensors of a batch in a row, beside the one that a forward is given."""

_FIRST_RULE: Final = len(EVIDENCE) - len(RULES)


def attribution(replay: Replay) -> Attribution:
    """Category and evidence of every life of a device."""
    lives = replay.lives
    num = len(lives)
    category = np.full(num, OTHER, np.int8)
    evidence = np.zeros(num, np.int8)
    tensor = np.full(num, NOTHING, np.int64)
    tensors = replay.snapshot.tensors
    if tensors is not None:
        tensor = _recorded(replay, tensors)
        has_category = tensor != NOTHING
        category[has_category] = tensors.category[tensor[has_category]]
        evidence[has_category] = EVIDENCE.index(RECORDED)
    annotated = _annotated(replay)
    has_category = (evidence == 0) & (annotated != NOTHING)
    category[has_category] = annotated[has_category]
    evidence[has_category] = EVIDENCE.index(ANNOTATED)
    if tensors is not None:
        speaks = lives.gone == replay.num_events
        speaks &= _has_line(replay)
        _follow_stack(replay, category, evidence, speaks, EVIDENCE.index(OF_RECORDED))
    facts = facts_of(replay)
    for row, (_, category_name, fits) in enumerate(RULES):
        decided = (evidence == 0) & fits(facts)
        category[decided] = CATEGORIES.index(category_name)
        evidence[decided] = _FIRST_RULE + row
    if tensors is not None:
        beside = _beside_inputs(replay, facts, category, evidence == 0)
        category[beside] = _INPUT
        evidence[beside] = EVIDENCE.index(BESIDE)
    speaks = ~facts.is_cut & (lives.born != BEFORE)
    _follow_stack(replay, category, evidence, speaks, EVIDENCE.index(AS_OTHERS))
    under_way = (evidence == 0) & facts.is_cut & (facts.made == FORWARD)
    under_way &= facts.has(MODULE)
    category[under_way] = CATEGORIES.index("activation")
    evidence[under_way] = EVIDENCE.index(UNDER_WAY)
    return Attribution(category, evidence, tensor)


def _recorded(replay: Replay, tensors: Tensors) -> Ints:
    """By life: the tensor that lay in it at the end; of several the largest."""
    lives = replay.lives
    rows = np.flatnonzero(lives.gone == replay.num_events)
    rows = rows[np.argsort(lives.addr[rows], kind="stable")]
    row_of_life = np.full(len(lives), NOTHING, np.int64)
    if not len(rows):
        return row_of_life
    own = np.flatnonzero(np.isin(tensors.device, (replay.device.device, NOTHING)))
    own = own[np.argsort(tensors.num_bytes[own], kind="stable")]
    place = np.searchsorted(lives.addr[rows], tensors.address[own], "right") - 1
    row = rows[np.maximum(place, 0)]
    inside = tensors.address[own] < lives.addr[row] + np.maximum(lives.size[row], 1)
    inside &= place >= 0
    row_of_life[row[inside]] = own[inside]  # the last one written is the largest
    return row_of_life


def _annotated(replay: Replay) -> Ints:
    """By life: the category that our annotation of it says; NOTHING where there is none."""
    texts = replay.snapshot.texts
    of_life = replay.annotations.of_life(len(replay.lives))
    rows, place = np.unique(of_life, return_inverse=True)
    data = [None if row < 0 else annotation_data(texts[row]) for row in rows.tolist()]
    codes = [
        NOTHING
        if fields is None or fields[0] not in CATEGORIES
        else CATEGORIES.index(fields[0])
        for fields in data
    ]
    return np.array(codes, np.int64)[place.reshape(-1)]


def _has_line(replay: Replay) -> Flags:
    """By life: whether its stack is of one line of a program.

    An empty stack, or one that ends where autograd is called, is that of a whole backward:
    a gradient of a parameter that was recorded says nothing about the gradients of
    activations beside it.
    """
    stacks = replay.stacks
    has_frames = np.diff(stacks.start) > 0
    innermost = stacks.frame[stacks.start[:-1][has_frames]]
    has_line = has_frames.copy()
    has_line[has_frames] = ~runs_autograd(stacks)[innermost]
    return np.append(has_line, False)[replay.lives.stack]


def _beside_inputs(
    replay: Replay, facts: LifeFacts, category: Ints, undecided: Flags
) -> Flags:
    """A batch has parts that no forward is given: targets, which the loss alone sees.

    They are moved in a row, by one function, and replaced by the next batch's. A copy of a
    parameter is no part of one.
    """
    lives, tensors = replay.lives, replay.snapshot.tensors
    is_input: Flags = category == _INPUT
    if tensors is None or not is_input.any():
        return np.zeros(len(lives), np.bool_)
    sizes = tensors.num_bytes[np.isin(tensors.category, _PARAMETERS)]
    may_be = undecided & ~facts.has(OUTSIDE) & ~np.isin(lives.size, sizes)
    order = np.argsort(lives.born, kind="stable")
    order = order[lives.born[order] != BEFORE]
    function = _functions_of(replay, order[(is_input | may_be)[order]])
    earlier, other = order[:-1], order[1:]
    alike = (function[earlier] == function[other]) & (function[earlier] != NOTHING)
    alike &= facts.born_in[earlier] == facts.born_in[other]
    alike &= facts.gone_in[earlier] == facts.gone_in[other]
    earlier, other = earlier[alike], other[alike]
    for _ in range(_MAX_BESIDE):
        before = is_input.copy()
        is_input[other] |= before[earlier] & may_be[other]
        is_input[earlier] |= before[other] & may_be[earlier]
        if np.array_equal(is_input, before):
            break
    is_input &= may_be
    return is_input


def _functions_of(replay: Replay, rows: Ints) -> Ints:
    """By life, a number for its stack but for the innermost line; NOTHING: not one of `rows`."""
    stacks = replay.stacks
    numbers: dict[tuple[object, ...], int] = {}
    of_life = np.full(len(replay.lives), NOTHING, np.int64)
    used, place = np.unique(replay.lives.stack[rows], return_inverse=True)
    keys = []
    for stack in used.tolist():
        first, stop = stacks.start[stack : stack + 2].tolist() if stack >= 0 else (0, 0)
        frames = stacks.frame[first:stop].tolist()
        if not frames:
            keys.append(NOTHING)
            continue
        key = stacks.name[frames[0]], stacks.filename[frames[0]], *frames[1:]
        keys.append(numbers.setdefault(key, len(numbers)))
    of_life[rows] = np.array(keys, np.int64)[place.reshape(-1)]
    return of_life


def _follow_stack(
    replay: Replay, category: Ints, evidence: Ints, speaks: Flags, reason: int
) -> None:
    """Give undecided lives what nearly all of their stack, that may speak, have."""
    lives = replay.lives
    num_stacks = len(replay.stacks)
    with_stack = (lives.stack >= 0) & (lives.born != BEFORE)
    voices = np.flatnonzero(speaks & with_stack)
    if not len(voices):
        return
    num_bytes = np.bincount(
        lives.stack[voices] * len(CATEGORIES) + category[voices],
        weights=lives.size[voices],
        minlength=num_stacks * len(CATEGORIES),
    ).reshape(num_stacks, len(CATEGORIES))
    best = num_bytes.argmax(axis=1)
    share = num_bytes.max(axis=1) / np.maximum(num_bytes.sum(axis=1), 1)
    is_clear = (share >= NEARLY_ALL) & (num_bytes.sum(axis=1) > 0) & (best != OTHER)
    undecided = np.flatnonzero((evidence == 0) & with_stack)
    chosen = undecided[is_clear[lives.stack[undecided]]]
    category[chosen] = best[lives.stack[chosen]]
    evidence[chosen] = reason
