"""Workspaces of cuBLAS among the allocations: by frames, and by size where there are none.

torch allocates one for each handle and stream the first time it multiplies matrices
there, and keeps it. Stacks of C++ name the function; stacks of Python end at the line
that multiplied, or are empty in autograd's threads. Then the size tells: that of
CUBLAS_WORKSPACE_CONFIG's default `:4096:2:16:8`, which no tensor is likely to have, or
the 32 MiB of newer devices, which many a tensor has: so only the first such allocation
of a stream counts, where it was never freed and came of a multiplication: of a line that
multiplies by its name, or that went on allocating other sizes without keeping another. Threads have
handles of their own: where one stack has them on many streams, all count, as no
tensor is kept once on each of them. Stacks with C++ that name no cuBLAS are of tensors,
unless they are on many streams: symbols may be missing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import BEFORE
from memboard.tb_plugin.analysis.categories.frames import NATIVE
from memboard.tb_plugin.analysis.categories.marks import BACKWARD, NO_PYTHON, WORKSPACE

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import Stacks


DEFAULT_BYTES: Final = (2 * 4096 + 8 * 16) << 10
NEWER_BYTES: Final = 32 << 20

_MANY: Final = 8
"""Streams on which one stack keeps a block of a workspace's size."""

_MULTIPLIES: Final = re.compile(
    r"^_*(linear|matmul|mm|bmm|addmm|baddbmm|einsum|multi_head_attention\w*"
    r"|scaled_dot_product\w*)_*$"
)
_OF_TORCH: Final = re.compile(
    r"[/\\]torch[/\\]nn[/\\]modules[/\\](linear|activation|transformer|rnn)\.py$"
)


def workspaces(
    lives: Lifetimes, stacks: Stacks, stream: Ints, num_events: int
) -> Flags:
    """By life of a device: whether it is a workspace; `stream`: by life."""
    of_life = np.append(stacks.marks, 0)[lives.stack]
    kept = lives.freed >= num_events
    is_workspace: Flags = (of_life & WORKSPACE) != 0
    if is_workspace.any():
        return is_workspace
    is_workspace = kept & (lives.size == DEFAULT_BYTES)
    newer = np.flatnonzero(kept & (lives.size == NEWER_BYTES) & (lives.born != BEFORE))
    if len(newer):
        multiplies, is_told = _multiplies(stacks)
        goes_on = _goes_on(lives, newer)
        newer = newer[np.append(multiplies, True)[lives.stack[newer]] | goes_on]
        single = newer[~np.append(is_told, False)[lives.stack[newer]]]
        # Autograd's thread has a handle of its own, and a stack without Python: none at
        # all, or an empty one.
        has_frames = np.append(np.diff(stacks.start) > 0, False)
        has_stack = has_frames[lives.stack[single]]
        keys = np.stack([stream[single], has_stack], axis=1)
        _, first = np.unique(keys, axis=0, return_index=True)
        is_workspace[single[first]] = True
        of_many = [
            stack
            for stack in np.unique(lives.stack[newer]).tolist()
            if len(np.unique(stream[newer[lives.stack[newer] == stack]])) >= _MANY
        ]
        is_workspace[newer[np.isin(lives.stack[newer], of_many)]] = True
    return is_workspace


def _goes_on(lives: Lifetimes, rows: Ints) -> Flags:
    """By row of lives: whether its line repeats what it allocated, but not this.

    A workspace is made once beside outputs that come and go at each call. What a line makes
    when it is first run (a mask, a cache) has no later blocks of its line.
    """
    goes_on = np.zeros(len(rows), np.bool_)
    stacks, first, counts = np.unique(
        lives.stack[rows], return_index=True, return_counts=True
    )
    alone = (counts == 1) & (stacks >= 0)
    of_lines = np.flatnonzero(np.isin(lives.stack, stacks[alone]))
    of_lines = of_lines[np.argsort(lives.stack[of_lines], kind="stable")]
    begins = np.searchsorted(lives.stack[of_lines], stacks[alone])
    ends = np.searchsorted(lives.stack[of_lines], stacks[alone], "right")
    for place, begin, end in zip(
        first[alone].tolist(), begins.tolist(), ends.tolist(), strict=True
    ):
        line, born = of_lines[begin:end], lives.born[rows[place]]
        before = lives.size[line[lives.born[line] < born]]
        after = lives.size[line[lives.born[line] > born]]
        goes_on[place] = bool(np.isin(after, before).any())
    return goes_on


def _multiplies(stacks: Stacks) -> tuple[Flags, Flags]:
    """By stack: whether its innermost Python multiplies, or may; and whether C++ is told."""
    kinds = stacks.kinds
    multiplies: Flags = (stacks.marks & (NO_PYTHON | BACKWARD)) != 0
    is_told = np.zeros(len(stacks), np.bool_)
    for stack in np.flatnonzero(np.diff(stacks.start)).tolist():
        frames = stacks.of(stack)
        python = frames[kinds[frames] != NATIVE]
        is_told[stack] = len(python) < len(frames)
        if not len(python):
            continue
        function, filename = stacks.name[python[0]], stacks.filename[python[0]]
        if _MULTIPLIES.match(function) or _OF_TORCH.search(filename):
            multiplies[stack] = True
    return multiplies, is_told
