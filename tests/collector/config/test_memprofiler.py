"""MemProfiler's settings: every key accounted for, wherever a file puts them."""

from __future__ import annotations

import logging
import operator
from dataclasses import dataclass, field

import pytest

import memboard as mb
from memboard.collector.config import load, load_with_imports, settings
from memboard.collector.config.imports.memprofiler import KEYS
from memboard.collector.config.values import (
    UNCHANGED,
    ZERO_ATTRIBUTES,
    Setting,
    checked,
)
from memboard.collector.errors import ConfigError
from tests.collector.config.conftest import error_of

MEMPROFILER_DEFAULTS = {
    "functions.enabled": False,
    "functions.default": ("training_step",),
    "functions.device": (),
    "functions.host": (),
    "functions.history": ("training_step",),
    "functions.modules": ("training_step",),
    "schedule.warmup": 1,
    "schedule.active": 1,
    "history.enabled": False,
    "modules.enabled": False,
    "modules.root": "",
    "modules.table_depth": 2,
    "modules.table_units": "MiB",
    "dumps": (),
    "dumps_dir": "",
    "hooks.enabled": True,
    "hooks.pre_forward": (),
    "hooks.post_forward": (),
    "hooks.reset": (),
    "hooks.save_attrs": (),
    "activations.enabled": True,
    "activations.functions": (),
}
"""What an empty `memprofiler_cfg` becomes: it is off unless it says enabled."""


def converted(cfg):
    """Our leaves for a mapping of theirs, and the list of what each key became."""
    config, (found,) = load_with_imports({"memprofiler_cfg": cfg})
    leaves = {path: config.leaf(path) for path in found.leaves}
    return leaves, {entry.key: entry for entry in found.entries}


# Key by key.


def test_an_empty_mapping_has_memprofilers_defaults():
    leaves, entries = converted({})
    assert leaves == MEMPROFILER_DEFAULTS
    assert list(entries) == list(KEYS), "every key is accounted for"
    assert not any(entry.given for entry in entries.values())
    assert converted(None)[0] == leaves


@pytest.mark.parametrize(
    ("key", "value", "changed"),
    [
        (
            "track_fsdp_mem",
            True,
            {"modules.enabled": True, "dumps": ("modules", "yaml")},
        ),
        (
            "cuda_allocator_history",
            True,
            {"history.enabled": True, "dumps": ("history", "yaml")},
        ),
        ("fsdp_mem_track_module_depth", 3, {"modules.table_depth": 3}),
        ("fsdp_mem_tracker_tabulate", True, {}),
        ("fsdp_mem_tracker_units", "GiB", {"modules.table_units": "GiB"}),
        ("fsdp_mem_tracker_root_module", "model", {"modules.root": "model"}),
        ("dump_memorystats_pickle", True, {}),
        ("dump_memorystats_yaml", False, {"dumps": ()}),
        ("save_dir", "/tmp/here", {"dumps_dir": "/tmp/here"}),
        ("enable_memory_hooks", False, {"hooks.enabled": False}),
        ("enable_saved_tensors_hooks", False, {"activations.enabled": False}),
        ("retain_hooks_for_funcs", ["eval"], {}),
        (
            "schedule",
            {"warmup_iters": 2, "max_iter": 4},
            {"schedule.warmup": 2, "schedule.active": 2},
        ),
        ("schedule", {"max_iter": 0}, {"schedule.active": 0}),
        ("schedule", None, {}),
        (
            "collect_funcs",
            {"default": ["training_step", "test_step"]},
            dict.fromkeys(
                ("functions.default", "functions.history", "functions.modules"),
                ("training_step", "test_step"),
            ),
        ),
        (
            "collect_funcs",
            {"default": [], "fsdp": ["a", "b"]},
            {
                "functions.default": (),
                "functions.history": (),
                "functions.modules": ("a", "b"),
            },
        ),
        (
            "collect_funcs",
            {"cpu": {"c"}, "cuda": ["d"], "cuda_allocator_history": ["e"]},
            {
                "functions.host": ("c",),
                "functions.device": ("d", "e"),  # e's hooks are read without captures
                "functions.history": ("training_step", "e"),
            },
        ),
        (
            "memory_hooks",
            {"pre_forward_hooks": ["my.hooks.pre"]},
            {"hooks.pre_forward": ("my.hooks.pre",)},
        ),
        (
            "memory_hooks",
            {
                "post_forward_hooks": [
                    "fts_examples.profiling.npp_hooks._hook_npp_post_forward",
                    "my.hooks.post",
                ],
                "reset_state_hooks": ["my.hooks.reset"],
            },
            {
                "hooks.post_forward": ("my.hooks.post",),
                "hooks.reset": ("my.hooks.reset",),
            },
        ),
        (
            "saved_tensors_funcs",
            ["my.hooks.pack", "identity_lambda"],
            {"activations.functions": ("my.hooks.pack", UNCHANGED)},
        ),
        (
            "saved_tensors_funcs",
            ["fts_examples.profiling.npp_hooks._npp_hook", "my.hooks.unpack"],
            {"activations.functions": (UNCHANGED, "my.hooks.unpack")},
        ),
        (
            "save_hook_attrs",
            ["rss_diff", "npp_diff", "my_peak"],
            {
                "hooks.save_attrs": ("my_peak",),
                "hooks.reset": (ZERO_ATTRIBUTES,),
            },
        ),
    ],
)
def test_what_each_key_becomes(key, value, changed):
    base = {**MEMPROFILER_DEFAULTS, "functions.enabled": True, "dumps": ("yaml",)}
    leaves, entries = converted({"enabled": True, key: value})
    assert leaves == {**base, **changed}
    mine = [entry for name, entry in entries.items() if name.partition(".")[0] == key]
    told = {path for entry in mine if entry.given for path in entry.leaves}
    assert told or not changed
    if not told and value is not None:
        assert all(entry.note for entry in mine), "a dead key is said to be dead"


def test_all_keys_have_a_row_above():
    """So that a key that is added without a test is noticed."""
    rows = test_what_each_key_becomes.pytestmark[0].args[1]
    assert {row[0] for row in rows} | {"enabled"} == {k.partition(".")[0] for k in KEYS}


def test_disabled_switches_off_what_it_would_have_switched_on():
    leaves, entries = converted(
        {"track_fsdp_mem": True, "cuda_allocator_history": True}
    )
    assert leaves == MEMPROFILER_DEFAULTS
    assert "off, because enabled is false" in str(entries["track_fsdp_mem"])
    assert str(entries["enabled"]) == (
        "enabled: false -> functions.enabled: false (steps are recorded all the same)"
    )


def test_every_leaf_it_sets_is_a_setting_and_its_defaults_are_admitted():
    assert set(MEMPROFILER_DEFAULTS) <= set(settings())
    for key, (hint, default, *_) in KEYS.items():
        setting = Setting(key, hint, default)
        assert checked(setting, default, "here") == default


@pytest.mark.parametrize(
    ("cfg", "key", "said"),
    [
        ({"enabled": True}, "track_fsdp_mem", None),
        ({"enabled": True}, "cuda_allocator_history", None),
        ({"enabled": True}, "dump_memorystats_pickle", None),
        ({"enabled": True, "track_fsdp_mem": True}, "track_fsdp_mem", "optimizers"),
        ({"enabled": True}, "fsdp_mem_track_module_depth", "track_fsdp_mem is false"),
        ({"enabled": True}, "fsdp_mem_tracker_tabulate", "track_fsdp_mem is false"),
        ({"enabled": True}, "collect_funcs.fsdp", "track_fsdp_mem is false"),
        ({"track_fsdp_mem": True}, "fsdp_mem_tracker_units", "enabled is false"),
        (
            {"enabled": True, "track_fsdp_mem": True},
            "fsdp_mem_tracker_tabulate",
            "every report is of tables",
        ),
        (
            {"enabled": True},
            "collect_funcs.cuda_allocator_history",
            "cuda_allocator_history is false",
        ),
        (
            {"enabled": True, "collect_funcs": {"cuda_allocator_history": ["f"]}},
            "collect_funcs.cuda_allocator_history",
            "not captured, because cuda_allocator_history is false; hooks are read",
        ),
        ({"enabled": True}, "collect_funcs.default", "decorate them"),
        (
            {"enabled": True, "collect_funcs": {"default": [], "cpu": ["f"]}},
            "collect_funcs.default",
            None,
        ),
        (
            {"enabled": True, "collect_funcs": {"default": [], "cpu": ["f"]}},
            "collect_funcs.cpu",
            "decorate them",
        ),
        ({"enabled": True}, "save_hook_attrs", "rss_* and npp_* are recorded"),
        (
            {"enabled": True, "enable_saved_tensors_hooks": False},
            "save_hook_attrs",
            "rss_* are recorded",
        ),
        (
            {"enabled": True, "enable_saved_tensors_hooks": False},
            "saved_tensors_funcs",
            "enable_saved_tensors_hooks is false",
        ),
        (
            {"enabled": True, "enable_saved_tensors_hooks": False},
            "enable_saved_tensors_hooks",
            None,
        ),
        (
            {"enabled": True, "enable_memory_hooks": False},
            "save_hook_attrs",
            "enable_memory_hooks is false",
        ),
    ],
)
def test_what_is_said_of_a_key_is_so(cfg, key, said):
    """None: nothing is said of what is off, or not asked for."""
    note = converted(cfg)[1][key].note
    assert (said in note) if said else not note


def test_how_an_entry_reads():
    entries = converted({"enabled": True, "saved_tensors_funcs": ["a.b"] * 2})[1]
    assert str(entries["saved_tensors_funcs"]) == (
        "saved_tensors_funcs: [a.b, a.b] -> activations.functions: [a.b, a.b]"
    )
    assert str(entries["retain_hooks_for_funcs"]) == (
        "retain_hooks_for_funcs: [training_step] -> nothing: MemProfiler overwrites this"
        " key; hooks leave with the last collected call"
    )
    default = str(converted({})[1]["saved_tensors_funcs"])
    assert "_npp_hook, identity_lambda] ->" in default


# Where it stands.

TRAINER = """\
seed_everything: 42
process: a word of the trainer's own
trainer:
  max_epochs: 4
  callbacks:
  - class_path: some.Callback
    init_args:
      max_depth: 2
model:
  class_path: my.Model
  init_args:
    memprofiler_cfg:
      enabled: true
      schedule:
        max_iter: 7
"""


@pytest.mark.parametrize(
    "wrap",
    [
        lambda cfg: {"memprofiler_cfg": cfg},
        lambda cfg: {"model": {"init_args": {"memprofiler_cfg": cfg}}},
        lambda cfg: {"model": {"memprofiler_cfg": cfg}, "trainer": {"x": [1]}},
        lambda cfg: {"model.init_args.memprofiler_cfg": cfg},
        lambda cfg: {"fit": [{"callbacks": [{"memprofiler_cfg": cfg}]}]},
        lambda cfg: {
            "memprofiler_cfg": {"class_path": "x.MemProfilerCfg", "init_args": cfg}
        },
        lambda cfg: {"a": {"memprofiler_cfg": cfg}, "b": {"memprofiler_cfg": cfg}},
        lambda cfg: {"memprofiler_cfg": None, "model": {"memprofiler_cfg": cfg}},
    ],
)
def test_it_is_found_wherever_it_stands(wrap):
    cfg = {"enabled": True, "schedule": {"max_iter": 7}}
    assert load(wrap(cfg)) == load({"memprofiler_cfg": cfg})
    assert load(wrap(cfg)).schedule.active == 6


def test_a_trainers_file_may_use_our_words_for_its_own_and_is_a_layer(write):
    path = write(TRAINER)
    config, (found,) = load_with_imports(path)
    assert config.schedule.active == 6
    assert config.process == load().process
    assert found.left_out == ("seed_everything", "process", "trainer", "model")
    config = load([{"max_file_bytes": 64}, path, {"dumps": []}], modules=True)
    assert (config.max_file_bytes, config.schedule.active) == (64, 6)
    assert config.modules.enabled
    assert not config.dumps


def test_our_own_keys_beside_it_win():
    config, (found,) = load_with_imports(
        {
            "memprofiler_cfg": {"enabled": True},
            "schedule": {"active": 4},
            "max_file_bytes": 64,
            "trainer.profiler": "x.yaml",
        }
    )
    assert config.schedule.active == 4
    assert config.max_file_bytes == 64
    assert found.left_out == ("trainer.profiler",)


def test_settings_that_refer_to_themselves_end():
    loop = {"x": []}
    loop["x"].append(loop)
    assert "unknown key 'x'" in error_of(loop)


def test_a_dataclass_is_taken_as_its_fields():
    @dataclass
    class Schedule:
        warmup_iters: int = 1
        max_iter: int | None = 2

    @dataclass
    class MemProfilerCfg:
        enabled: bool = True
        schedule: Schedule = field(default_factory=Schedule)

    config = load({"memprofiler_cfg": MemProfilerCfg()})
    assert config.schedule.active == 1
    assert config.functions.enabled


def test_callables_are_kept():
    hooks = {"pre_forward_hooks": [operator.neg]}
    cfg = {"enabled": True, "memory_hooks": hooks}
    assert load({"memprofiler_cfg": cfg}).hooks.pre_forward == (operator.neg,)


# What is wrong with it.


def test_several_of_them(write):
    path = write("a:\n  memprofiler_cfg: {}\nb:\n  memprofiler_cfg: {}\n")
    assert error_of(path) == (
        f"{path} holds 2 mappings of memprofiler_cfg: 'a.memprofiler_cfg' (line 2),"
        " 'b.memprofiler_cfg' (line 4). Keep the one that counts."
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "enabeld: true",
            "unknown key 'memprofiler_cfg.enabeld' in {at}: did you mean",
        ),
        (
            "schedule: {max: 3}",
            "'memprofiler_cfg.schedule.max' in {at}: did you mean 's",
        ),
        (
            "schedule: [1]",
            "'memprofiler_cfg.schedule' in {at} must hold keys and values",
        ),
        ("enabled: 'yes'", "'memprofiler_cfg.enabled' in {at} must be true or false"),
        (
            "fsdp_mem_tracker_units: MB",
            "units' in {at} must be 'B', 'KiB', 'MiB' or 'GiB'",
        ),
        (
            "schedule: {warmup_iters: -1}",
            "iters' in {at} must be a whole number from 0",
        ),
        ("saved_tensors_funcs: [a.b]", "saved_tensors_funcs' in {at} must be two, one"),
        ("save_hook_attrs: {a: 1}", "must be a list of names, got a dict"),
        ("memory_hooks: {pre_forward_hooks: [x]}", "must be a list of dotted names"),
        (
            "schedule: {max_iter: 1}",
            "schedule.max_iter' in {at} is 1 and 'memprofiler_cfg.schedule.warmup_iters' in",
        ),
    ],
)
def test_errors_name_its_own_keys_and_lines(write, line, words):
    path = write(f"# a comment\nmodel:\n  memprofiler_cfg:\n    {line}\n")
    assert words.format(at=f"{path}, line 4") in error_of(path)


def test_a_file_named_in_its_place():
    assert error_of({"memprofiler_cfg": "other.yaml"}) == (
        "'memprofiler_cfg' in the given mapping must hold keys and values, got the text"
        " 'other.yaml'. Write its keys below it; where it names a file, give that file"
        " as config."
    )


def test_a_key_twice_counts_only_in_its_part(write):
    path = write("x: {a: 1, a: 2}\nmemprofiler_cfg: {enabled: true}\n")
    assert load(path).functions.enabled
    path.write_text("memprofiler_cfg:\n  enabled: true\n  enabled: false\n")
    assert "'memprofiler_cfg.enabled' stands twice in" in error_of(path)


# What record() makes of it.


def test_record_takes_the_file_and_tells_once_what_became_of_it(
    tmp_path, write, caplog, monkeypatch
):
    path = write(TRAINER)
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        with (
            caplog.at_level(logging.WARNING, logger="memboard"),
            mb.record(tmp_path / "run", config=path, scalars=False) as recorder,
        ):
            recorder.step()
    told = [r.getMessage() for r in caplog.records if "MemProfiler" in r.getMessage()]
    assert len(told) == 1, "by the first rank alone"
    assert told[0].splitlines()[:-1] == [
        f"memboard: {path} holds MemProfiler's settings; they became:",
        "  enabled: true -> functions.enabled: true",
        (
            "  schedule.max_iter: 7 -> schedule.active: 6 (the number of collected calls, 0 for no"
            " end)"
        ),
        "  not of memprofiler_cfg, left out: seed_everything, process, trainer, model",
    ]
    assert told[0].endswith("writes the file in MemBoard's words.")


def test_an_error_in_our_words_follows_what_the_users_keys_became(tmp_path, caplog):
    hooks = {"post_forward_hooks": ["no_such_package.hook"]}
    theirs = {"memprofiler_cfg": {"enabled": True, "memory_hooks": hooks}}
    with pytest.raises(
        ConfigError, match=r"'hooks\.post_forward' names no_such_package"
    ):
        mb.record(tmp_path / "run", config=theirs)
    (told,) = [r.getMessage() for r in caplog.records]
    assert "memory_hooks.post_forward_hooks: [no_such_package.hook] ->" in told
    assert not (tmp_path / "run").exists()
