"""finetuning-scheduler's real MemProfiler beside MemBoard, on the same Lightning trainings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tb_plugin.cli import main
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


def trained(folder: Path, recorder: str, config: dict[str, Any]) -> Path:
    settings = {
        "recorder": recorder,
        "folder": str(folder / recorder),
        "memprofiler_cfg": {"enabled": True, **config},
        "batches": 6,
    }
    run("memprofiler_training", settings)
    return folder / recorder


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


def test_what_memprofiler_left_opens_as_one_run(tmp_path, capsys):
    folder = trained(tmp_path, "memprofiler", {})
    capsys.readouterr()
    assert main(["report", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "training_step" in said
