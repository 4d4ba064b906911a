"""finetuning-scheduler's real MemProfiler beside MemBoard, on the same Lightning trainings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from memboard.collector.afterwards import dumps
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.cli.export.module_table import WindowTable
from memboard.tb_plugin.formats.memprofiler.report import read_report
from tests.collector.cli.test_export_modules import as_recorded, sections
from tests.collector.recordings import wait_until
from tests.peers.running import needs_peers, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_peers

STEPS = ["training_step", "validation_step"]


class _AnyTag(yaml.SafeLoader):
    """Takes Python's tags for what stands below them: MemProfiler dumps a defaultdict."""


def _below(loader: yaml.SafeLoader, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    return ""


_AnyTag.add_multi_constructor("tag:yaml.org,2002:python/", _below)


def snaps_of(folder: Path) -> dict[str, dict[str, int]]:
    path = folder / "memprofiler" / "rank_0_memory_stats.yaml"
    plain = yaml.load(path.read_text(), _AnyTag)
    return plain.get("dictitems", plain)


def trained(
    folder: Path, recorder: str, config: dict[str, Any], sharded: str = ""
) -> Path:
    """Where the files are, once they are there; `sharded`: on two ranks."""
    run_program(folder, recorder, config, sharded)
    if recorder == "memboard":
        ranks = 2 if sharded else 1
        notes = partial(dumps.notes_of, folder / recorder)
        wait_until(lambda: [one.status for _, one in notes()] == ["written"] * ranks)
    return folder / recorder


def run_program(
    folder: Path, recorder: str, config: dict[str, Any], sharded: str = ""
) -> str:
    settings = {
        "recorder": recorder,
        "folder": str(folder / recorder),
        "memprofiler_cfg": {"enabled": True, **config},
        "batches": 6,
        "sharded": sharded,
    }
    return run("memprofiler_training", settings, ranks=2 if sharded else 1)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"collect_funcs": {"default": [], "cpu": STEPS}},
        {"collect_funcs": {"default": STEPS}, "schedule": {"warmup_iters": 2, "max_iter": 5}},
        {"collect_funcs": {"default": [], "cpu": STEPS}, "enable_memory_hooks": False},
    ],
)  # fmt: skip
def test_snaps_have_the_same_keys_and_hooks_the_same_figures(tmp_path, config):
    theirs = snaps_of(trained(tmp_path, "memprofiler", config))
    ours = snaps_of(trained(tmp_path, "memboard", config))
    assert {snap: set(of) for snap, of in ours.items()} == {
        snap: set(of) for snap, of in theirs.items()
    }
    for snap, values in theirs.items():
        for name, value in values.items():
            if name.startswith("npp_"):
                assert ours[snap][name] == value, (snap, name)


def test_what_nobody_counted_is_null_where_memprofiler_writes_zeros(tmp_path):
    config = {"enable_saved_tensors_hooks": False}
    theirs = snaps_of(trained(tmp_path, "memprofiler", config))
    ours = snaps_of(trained(tmp_path, "memboard", config))
    assert {snap: set(of) for snap, of in ours.items()} == {
        snap: set(of) for snap, of in theirs.items()
    }
    end = "0.training_step.2.end"
    for name in ("npp_diff", "npp_pre_forward", "npp_post_forward"):
        assert (theirs[end][name], ours[end][name]) == (0, None)


def test_neither_leaves_hooks_on_the_model(tmp_path):
    config = {"collect_funcs": {"default": [], "cpu": STEPS}}
    for recorder in ("memprofiler", "memboard"):
        assert run_program(tmp_path, recorder, config).split()[-1] == "0"


TABLES = {
    "track_fsdp_mem": True,
    "fsdp_mem_tracker_root_module": "layers",
    "fsdp_mem_tracker_tabulate": True,
    "fsdp_mem_tracker_units": "B",
    "fsdp_mem_track_module_depth": 3,
    "schedule": {"warmup_iters": 1, "max_iter": 4},
}


def tables_of(
    folder: Path,
) -> dict[str, dict[tuple[str, str, int, str], dict[str, int]]]:
    """Sizes by module, state, call and device, by the names of the reports."""
    found = {}
    for path in (folder / "memprofiler").glob("fsdp_mem_rank_*.log"):
        report = read_report(path.read_bytes())
        assert not report.is_cut
        states = as_recorded(report.states, fsdp=True)
        found[path.name] = sections(WindowTable(states, is_fsdp=True).nested())
    return found


BATCH_BYTES = 4 * 64 * 8


@pytest.mark.parametrize("sharded", ["forward", "whole"])
def test_tables_of_fsdp_have_the_same_names_and_figures(tmp_path, sharded):
    """But for what torch's tracker cannot know, where MemProfiler has it follow a function.

    It is told of no inputs, takes them for activations once an operator returns a view of
    them, and does not see what is freed between two calls.
    """
    theirs = tables_of(trained(tmp_path, "memprofiler", TABLES, sharded))
    ours = tables_of(trained(tmp_path, "memboard", TABLES, sharded))
    assert set(ours) == set(theirs)
    assert len(theirs) == 6
    for name, report in theirs.items():
        assert set(ours[name]) == set(report)
        assert len(report) == (16 if sharded == "forward" else 31)
        for place, sizes in report.items():
            mine = dict(ours[name][place])
            assert mine.pop("Inputs") == BATCH_BYTES
            assert sizes.pop("Inputs") == 0
            seen = sizes.pop("Activation") - mine.pop("Activation")
            assert seen in (0, BATCH_BYTES), (name, place)
            differing = {key for key in sizes if sizes[key] != mine[key]} - {"Total"}
            assert differing <= unseen(place, name), (name, place)


def unseen(place: tuple[str, str, int, str], name: str) -> set[str]:
    """Categories of which torch's tracker has more than there is."""
    module, state, *_ = place
    if state == "After Post-Backward":
        return {"Unsharded Grad"}  # its own wrapper holds one until later
    if (module, state) == ("FSDPTransformer", "Before Pre-Forward"):
        return set() if name.endswith("_2.log") else {"Unsharded Param"}
    return set()


def test_what_memprofiler_left_opens_as_one_run(tmp_path, capsys):
    folder = trained(tmp_path, "memprofiler", {})
    capsys.readouterr()
    assert main(["report", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "training_step" in said
