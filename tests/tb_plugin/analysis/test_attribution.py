"""Categories, against what the simulated training knows of its own allocations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS
from memboard.tb_plugin.analysis.allocator.live import live_rows
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.attribution import (
    EVIDENCE,
    OF_RECORDED,
    OTHER,
    RECORDED,
    RULES,
    Attribution,
    attribution,
)
from memboard.tb_plugin.analysis.snapshots.extras import Tensors
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.simulate import Form, oom_case, trained_rank
from tests.simulate.allocator.settings import GIB
from tests.tb_plugin.analysis.made_programs import MIB, Training, in_module
from tests.tb_plugin.analysis.snapshots import (
    EXPECTED,
    INCONSISTENT,
    named,
    needs_real,
    real,
    unknown_share,
)

SAVED = (
    "embedding",
    "attention norm",
    "queries",
    "attention",
    "residual",
    "feed forward norm",
    "gate",
    "up",
    "product",
    "logits",
    "wide logits",
    "loss",
)
TRUTH = {
    "parameter": "param",
    "batch": "input",
    **dict.fromkeys(SAVED, "activation"),
    "cast": "temp",
    "moments": "optimizer",
    "update": "temp",
    "gather": "all_gather",
    "backward gather": "all_gather",
    "reduce": "sharded_grad",
    "accumulate": "grad",
    "gradient": "temp",
    "activation gradient": "temp",
    "attention gradient": "temp",
    "norm gradient": "temp",
    "logits gradient": "temp",
    "kept outputs": "other",
}
"""By site of the training: what it allocates."""
PASSING = (
    "activation gradient",
    "attention gradient",
    "norm gradient",
    "logits gradient",
)
"""They are temporary, unless it is proved that they are gradients of activations."""


UNKNOWN = {"ZidongLiu": 0.75, "JasperSolt": 0.16}
"""Largest shares: an optimizer of its own that is no torch.optim; a data set that was
copied to the device as a whole."""


class Told:
    """A training, and what it held at some moments, by address."""

    def __init__(self, stacks, form=Form(), steps=5) -> None:  # noqa: B008
        rank = trained_rank(400, stacks=stacks, total_bytes=24 * GIB)
        self.held: dict[int, dict[int, str]] = {}
        training, history = rank.training, rank.history

        def note() -> None:
            sites = {block.address: site for block, site in training.live.items()}
            self.held[history.num_recorded - 1] = sites

        allocate = rank.allocator.allocate

        def watched(*args):
            made = allocate(*args)
            if history.num_recorded % 7 == 0:
                # What was just made is in no list yet.
                sites = {b.address: site for b, site in training.live.items()}
                self.held[history.num_recorded - 1] = sites
            return made

        rank.allocator.allocate = watched
        for _ in range(steps):
            rank.step(2048, at_loss=note)
        rank.plant_growth(1 << 20, 1, "kept outputs")
        rank.step(2048)
        note()
        self.snapshot = snapshot_of(tables_of(rank.snapshot(form)))
        self.replay = Replay(self.snapshot, self.snapshot.devices[0])

    def share_right(self, found: Attribution) -> float:
        """Bytes of the right category, of all that were looked at."""
        right = total = 0
        lives = self.replay.lives
        for moment, sites in self.held.items():
            for row in live_rows(lives, moment).tolist():
                site = sites.get(int(lives.addr[row]))
                if site not in TRUTH:
                    continue
                size = int(lives.size[row])
                total += size
                said = CATEGORIES[found.category[row]]
                proved = said == "activation_grad" and site in PASSING
                right += size * (said == TRUTH[site] or proved)
        return right / total


@pytest.mark.parametrize("context", ["all", "alloc"])
@pytest.mark.parametrize("stacks", ["all", "python"])
def test_a_training_is_told_from_its_stacks(stacks, context):
    told = Told(stacks, Form(context=context))
    found = attribution(told.replay)
    assert len(told.held) > 50
    assert told.share_right(found) > 0.995
    peak = live_rows(told.replay.lives, told.replay.active.peak[1])
    assert unknown_share(found, told.replay, peak) < 0.01


@pytest.mark.parametrize(("cause", "seed"), [("growth", 2), ("fragmented", 1)])
def test_what_a_program_keeps_for_no_known_reason_is_unknown(cause, seed):
    case = oom_case(cause, seed)
    rank = case.ranks[case.label.rank]
    snapshot = snapshot_of(tables_of(rank.snapshot(case.form)))
    replay = Replay(snapshot, snapshot.devices[0])
    found = attribution(replay)
    oom = int(np.flatnonzero(replay.device.events.action == ACTIONS.index("oom"))[-1])
    rows = live_rows(replay.lives, oom)
    of = np.bincount(
        found.category[rows],
        weights=replay.lives.size[rows],
        minlength=len(CATEGORIES),
    )
    held = case.label.holders
    assert held["feature cache"] > 0.05 * of.sum()
    assert of[OTHER] >= 0.75 * held["feature cache"]
    assert of[CATEGORIES.index("optimizer")] == pytest.approx(held["moments"], rel=0.02)
    assert of[CATEGORIES.index("param")] == pytest.approx(held["parameter"], rel=0.02)
    assert of[CATEGORIES.index("input")] <= 0.01 * of.sum()


def test_what_libraries_work_in_is_told_by_its_size_where_stacks_are_pythons():
    """On Hopper 32 MiB for each handle: forward's, and that of autograd's thread."""
    training = Training(weight=8 * MIB)
    forward = training.alloc(32 * MIB, in_module(22))
    held = training.forward(16 * MIB)
    backward = training.alloc(32 * MIB, [])
    training.backward(held, 16 * MIB)
    training.step(16 * MIB)
    snapshot = snapshot_of(tables_of(training.snapshot()))
    (device,) = [one for one in snapshot.devices if len(one.events)]
    replay = Replay(snapshot, device)
    found = attribution(replay)
    names = {
        int(addr): CATEGORIES[found.category[row]]
        for row, addr in enumerate(replay.lives.addr)
    }
    assert (names[forward], names[backward]) == ("temp", "temp")


def test_every_decision_says_why():
    told = Told("all", steps=2)
    found = attribution(told.replay)
    assert ((found.evidence == 0) == (found.category == OTHER)).all()
    assert len(set(EVIDENCE)) == len(EVIDENCE)
    assert {name for _, name, _ in RULES} <= set(CATEGORIES)


def test_what_was_recorded_comes_first_and_speaks_for_its_stack():
    told = Told("all", steps=2)
    replay = told.replay
    lives = replay.lives
    last = replay.num_events - 1
    # The stack of gathered parameters: by its frames it is all_gather.
    names = told.snapshot.stacks.name
    gathers = [
        row
        for row in range(len(lives))
        if lives.stack[row] >= 0
        and any(
            names[frame] == "build_model"
            for frame in told.snapshot.stacks.of(int(lives.stack[row])).tolist()
        )
    ]
    at_end = [row for row in gathers if lives.gone[row] > last]
    buffer = CATEGORIES.index("buffer")
    tensors = Tensors(
        address=lives.addr[at_end] + 8,  # a view into the block
        num_bytes=lives.size[at_end],
        category=np.full(len(at_end), buffer),
        name=tuple(f"table.{row}" for row in at_end),
        device=np.array([0, *[NOTHING] * (len(at_end) - 1)]),
    )
    replay.snapshot = replace(told.snapshot, tensors=tensors)
    found = attribution(replay)
    assert at_end
    assert (found.category[gathers] == buffer).all()
    words = {EVIDENCE[e] for e in found.evidence[at_end]}
    assert words == {RECORDED}
    assert found.tensor[at_end].tolist() == list(range(len(at_end)))
    others = [row for row in gathers if row not in at_end]
    assert {EVIDENCE[e] for e in found.evidence[others]} <= {OF_RECORDED}
    # Of another device's tensors nothing is taken.
    elsewhere = replace(tensors, device=np.full(len(at_end), 3))
    replay.snapshot = replace(told.snapshot, tensors=elsewhere)
    assert (attribution(replay).tensor == NOTHING).all()


@pytest.mark.parametrize("name", EXPECTED)
def test_recorded_snapshots_are_told_without_guessing(name):
    snapshot = real(name)
    for device in snapshot.devices:
        replay = Replay(snapshot, device)
        found = attribution(replay)
        assert len(found.category) == len(replay.lives)
        assert ((found.evidence == 0) == (found.category == OTHER)).all()
        if name in INCONSISTENT or len(device.events) < 1000:
            continue
        # What was there before the recording has no stack: of that nothing is known.
        rows = live_rows(replay.lives, replay.active.peak[1])
        rows = rows[replay.lives.born[rows] >= 0]
        most = UNKNOWN.get(name.partition("+")[0], 0.031)
        assert unknown_share(found, replay, rows) <= most


@needs_real
def test_known_lines_of_recorded_trainings_are_what_they_are():
    snapshot = real(named("kkaitlyn111"))
    replay = Replay(snapshot, snapshot.devices[0])
    found = attribution(replay)
    rows = live_rows(replay.lives, replay.num_events - 1)
    sums = np.bincount(
        found.category[rows],
        weights=replay.lives.size[rows],
        minlength=len(CATEGORIES),
    )
    of = dict(zip(CATEGORIES, sums.tolist(), strict=True))
    # AdamW: two states per parameter, one gradient; parameters are from before.
    assert of["optimizer"] == pytest.approx(2 * of["grad"], rel=0.02)
    assert of["other"] == pytest.approx(of["grad"], rel=0.02)
