"""What is misspelt, and files that cannot be read: each message names the remedy."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from itertools import islice

import pytest

from memboard.tb_plugin.cli import VERBS, main, parser_of, verbs_of
from memboard.tb_plugin.docs import NAMES
from tests.builders import RunBuilder
from tests.collector.cli.conftest import command
from tests.made_snapshots import long_history


def refused(capsys, *words) -> str:
    """What is printed about wrong usage."""
    with pytest.raises(SystemExit) as ended:
        main([*words])
    assert ended.value.code == 2
    return capsys.readouterr().err


def misspelt(word: str) -> str:
    """Two neighbouring letters in the other order, behind the first where that goes."""
    places = (at for at in range(1, len(word)) if word[at - 1] != word[at])
    at = max(islice(places, 2))
    return word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]


@pytest.mark.parametrize("verb", list(VERBS))
def test_a_misspelt_verb_is_guessed(verb, capsys):
    assert f"did you mean {verb}?" in refused(capsys, misspelt(verb), "x")


@pytest.mark.parametrize(
    ("word", "verb"),
    [
        ("documentation", "docs"),
        ("importing", "import"),
        ("reporting", "report"),
        ("running", "run"),
        ("raport", "report"),
    ],
)
def test_a_verb_with_another_ending_is_guessed_by_its_beginning(word, verb, capsys):
    assert f"did you mean {verb}?" in refused(capsys, word)


def options() -> list[tuple[str, str]]:
    """Every long option of every verb."""
    verbs = verbs_of(parser_of(*VERBS))
    return [
        (verb, option)
        for verb, parser in verbs.items()
        for option in parser._option_string_actions
        if option.startswith("--") and option != "--on"
    ]


@pytest.mark.parametrize("behind", [(), ("x",), ("1", "x")])
def test_a_misspelt_option_is_guessed_below_the_usage_of_its_verb(behind, capsys):
    for verb, option in options():
        wrong = "--" + misspelt(option[2:])
        said = refused(capsys, verb, wrong, *behind)
        assert said.startswith(f"usage: memboard {verb} ")
        assert f"there is no option {wrong}: did you mean --" in said
        assert f"did you mean {option}?" in said


def test_an_option_like_no_other_is_named_below_the_usage_of_its_verb(capsys):
    said = refused(capsys, "docs", "--zzzzzzz")
    assert said.startswith("usage: memboard docs ")
    assert said.endswith("there is no option --zzzzzzz\n")
    assert "did you mean --version?" in refused(capsys, "--verison")
    assert refused(capsys, "report", "--out").endswith("there is no option --out\n")
    assert "too many arguments: b" in refused(capsys, "docs", "index", "b")
    assert "argument --rank: '-1' was given" in refused(
        capsys, "report", "--rank", "-1"
    )


@pytest.mark.parametrize("page", NAMES)
def test_a_misspelt_page_is_guessed(page, capsys):
    assert f"did you mean {page}?" in refused(capsys, "docs", misspelt(page))


def test_a_word_like_no_other_gets_the_list(capsys):
    assert all(page in refused(capsys, "docs", "qqq") for page in NAMES)
    assert all(verb in refused(capsys, "qqq") for verb in VERBS)
    assert "did you mean bash?" in refused(capsys, "completion", "bsh")


def test_a_misspelt_device_is_guessed(capsys):
    assert "did you mean rtx4090?" in refused(capsys, "run", "--on", "rtx4900", "a.py")


def test_options_behind_a_program_are_the_programs(tmp_path, capsys):
    program = tmp_path / "program.py"
    assert command("run", program, "--jsno") == 2
    assert "the program cannot be found" in capsys.readouterr().err


KINDS = ("_dump_snapshot", "torch's profiler", "MemProfiler", "a recording")


@pytest.mark.parametrize("verb", [("report",), ("open", "--no-browser")])
@pytest.mark.parametrize(
    "content", [b"hello\n", b'{"a": 1}', b"\x89PNG\r\n\x1a\n" + bytes(99)]
)
def test_a_wrong_file_says_which_kinds_are_read(verb, content, tmp_path, capsys):
    path = tmp_path / "wrong.txt"
    path.write_bytes(content)
    assert command(*verb, path) == 2
    said = capsys.readouterr().err
    assert "neither a memory snapshot nor a trace" in said
    assert all(kind in said for kind in KINDS)


def test_a_folder_of_other_files_says_which_kinds_are_read(tmp_path, capsys):
    for names in ((), ("a.png", "b.txt")):
        for name in names:
            (tmp_path / name).write_bytes(b"\x89PNG")
        assert command("report", tmp_path) == 2
        said = capsys.readouterr().err
        assert "there is no recording, no snapshot and no trace" in said
        assert all(kind in said for kind in KINDS)


@pytest.mark.parametrize("content", [b"\x80\x04N.", None], ids=["bytes", "folder"])
def test_what_holds_no_settings_says_which_files_do(content, tmp_path, capsys):
    path = tmp_path / "settings.yaml"
    path.mkdir() if content is None else path.write_bytes(content)
    assert command("import-config", path) == 2
    said = capsys.readouterr().err
    assert "the file cannot be read" in said
    assert str(path) in said
    for kind in ("memprofiler_cfg", "Composer's", "PyTorchProfiler"):
        assert kind in said


def test_a_size_without_its_unit_is_no_device(capsys):
    assert "'80' is 80 bytes" in refused(capsys, "report", "--capacity", "80", "x")


def test_json_without_an_end_was_cut_off(tmp_path, capsys):
    path = tmp_path / "cut.json"
    path.write_text('{"a": 1')
    assert command("report", path) == 2
    assert "cut off while it was written" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a.pickle", "a.json", "a.json.gz", "a.txt"])
def test_an_empty_file_says_that_it_is_empty(name, tmp_path, capsys):
    path = tmp_path / name
    path.touch()
    for verb in (
        ("report",),
        ("open", "--no-browser"),
        ("merge",),
        ("import-config",),
        ("import", "--logdir", tmp_path / "runs", "--run", "a"),
    ):
        assert command(*verb, path) == 2
        assert "the file is empty" in capsys.readouterr().err.lower(), verb


def report_of(folder, capsys) -> tuple[str, dict]:
    """What is printed of a logdir, and its only run as JSON."""
    assert command("report", folder) in (0, 4)
    text = capsys.readouterr().out
    assert command("report", folder, "--json") in (0, 4)
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    return text, run


def test_an_empty_rank_file_says_why_the_rank_cannot_be_read(tmp_path, capsys):
    builder = RunBuilder(tmp_path / "run")
    builder.simple(2, 5)
    path = builder.files / "rank00002-20261101T000000000-0badcafe.events"
    path.touch()
    assert "Rank 2 has recorded nothing yet" in report_of(tmp_path, capsys)[0]
    os.utime(path, (1e9, 1e9))
    text, run = report_of(tmp_path, capsys)
    assert "Rank 2 could not be read: the file is empty." in text
    assert "The file is empty." in [one["what"] for one in run["problems"]]
    path.write_bytes(b"no records")
    os.utime(path, (1e9, 1e9))
    assert "read: the file holds no MemBoard records." in report_of(tmp_path, capsys)[0]


def test_a_run_is_never_called_by_a_dot(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "exp1"
    RunBuilder(folder).simple(1, 3)
    for place in (folder, f"{folder}/", f"file://{folder}"):
        text, run = report_of(place, capsys)
        assert text.startswith("exp1")
        assert run["run"]["name"] == run["overview"]["run"]["name"] == "exp1"
    monkeypatch.chdir(folder)
    assert report_of(".", capsys)[1]["run"]["name"] == "exp1"
    shutil.rmtree(folder)
    assert command("report", ".") == 2


def test_a_logdirs_own_files_of_several_kinds_are_named_after_it(tmp_path, capsys):
    folder = tmp_path / "exp1"
    folder.mkdir()
    history = pickle.dumps(long_history(500), 4)
    (folder / "rank0_memory_snapshot.pickle").write_bytes(history)
    (folder / "host_1.1.pt.trace.json").write_text('{"traceEvents": []}')
    command("report", folder, "--json")
    names = {one["run"]["name"] for one in json.loads(capsys.readouterr().out)["runs"]}
    assert names == {"exp1", "exp1 (traces)"}


@pytest.mark.parametrize(
    "name",
    [
        "saved.pickle",
        "rank1_memory_snapshot.pickle",
        "host_1.1.pt.trace.json.gz",
        "rank_1_memory_stats.yaml",
        "fsdp_mem_rank_0_step_1.log",
    ],
)
def test_an_empty_file_beside_others_is_said_to_be_empty(name, tmp_path, capsys):
    history = pickle.dumps(long_history(500), 4)
    (tmp_path / "rank0_memory_snapshot.pickle").write_bytes(history)
    (tmp_path / name).touch()
    os.utime(tmp_path / name, (1e9, 1e9))
    assert command("report", tmp_path, "--json") == 4
    report = json.loads(capsys.readouterr().out)
    problems = [one for part in (report, *report["runs"]) for one in part["problems"]]
    said = [one for one in problems if name in one["path"]]
    assert "the file is empty" in said[0]["what"].lower()


def test_a_run_that_was_recorded_twice_lists_both_attempts(tmp_path, capsys):
    builder = RunBuilder(tmp_path / "run")
    for attempt, num_steps in enumerate((10, 20)):
        rank = builder.rank(attempt=attempt, world_size=1)
        rank.steps(range(num_steps), allocated_peak_bytes=[1e6] * num_steps)
        rank.close()
    text, run = report_of(tmp_path, capsys)
    rows = text.partition("  attempt  started")[2].splitlines()[1:3]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert "0 to 9" in rows[0]
    assert "0 to 19" in rows[1]
    assert len(run["overview"]["attempts"]) == 2
