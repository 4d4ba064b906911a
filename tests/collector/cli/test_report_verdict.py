"""`memboard report` on errors: text, Markdown and JSON say what the page says."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tb_plugin.cli import main
from tests.builders import GIB, RunBuilder
from tests.errors_found import errors_in
from tests.oom_reports import add_error, add_report
from tests.simulate import oom_case

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def say(capsys):
    """Runs the verb and gives what it printed."""

    def said(*arguments: object, code: int = 0) -> str:
        assert main(["report", *map(str, arguments)]) == code
        printed = capsys.readouterr()
        return printed.out if code == 0 else printed.err

    return said


@pytest.fixture
def crashed(tmp_path) -> Path:
    """Rank 1 of two ran out of memory; nothing but its report is left."""
    run = RunBuilder(tmp_path / "exp")
    for number in range(2):
        rank = run.rank(number, world_size=2, device_total_bytes=80 * GIB)
        rank.steps(np.arange(3), allocated_peak_bytes=np.full(3, 70.0 * GIB))
        if number == 1:
            add_report(rank)
        rank.close(how="exception")
    return tmp_path


GOLDEN = """\
# exp

## Out of memory: really full; rank 1, device 0, step 40, backward, model.py:128 forward (FILE)

An allocation of 2.00 GiB at model.py:128 forward failed with 1.00 GiB free on the device: \
it was really full, 77.0 GiB were live, 97.5 % of what torch could have; 94.8 % of that \
came from two source lines.

94.8 % of the 77.0 GiB that were live came from two source lines: model.py:128 forward \
and optim.py:40 step.

From the report at the error, without the allocator's history.

| evidence | value | of | caveat |
|-|-:|-|-|
| **live (active)** | 77.0 GiB | device 0, at the error |  |
| **live, of what torch could have** | 97.5 % | device 0, at the error |  |
| failed allocation | 2.00 GiB | device 0, at the error |  |
| free on the device | 1.00 GiB | device 0, at the error |  |
| device memory | 80.0 GiB | device 0, at the error |  |
| reserved by torch | 78.0 GiB | device 0, at the error |  |
| reserved and not in use | 1.00 GiB | device 0, at the error | where it lies is not \
known without a history of the allocator |
| used outside torch | 1.00 GiB | device 0, at the error | contexts and communicators \
usually take up to 2.00 GiB |
| median peak of the others | 70.0 GiB | 1 other rank, so far |  |
| held at the error, above that | 7.00 GiB | device 0, at the error, against 1 other rank, so far | \
stages of a pipeline differ by design |

| held by | category | size | share of live | blocks |
|-|-|-:|-:|-:|
| model.py:128 forward | activation | 43.0 GiB | 55.8 % | 31 |
| optim.py:40 step | optimizer | 30.0 GiB | 39.0 % | 9 |
| no stack recorded | not known | 1.00 GiB | 1.3 % | 1 |

What to try:

1. Look at the largest holder first: model.py:128 forward holds 43.0 GiB, 55.8 % of what \
is live. (up to 43.0 GiB)
2. Where every rank holds the whole optimizer state, shard it (fully_shard, or \
ZeroRedundancyOptimizer). (up to 30.0 GiB)
3. Keep the optimizer's state in 8 bits, page it, or offload it to the host \
(bitsandbytes' AdamW8bit and PagedAdamW8bit, DeepSpeed's offload). (up to 30.0 GiB)
4. Make the step smaller: a smaller batch with gradient accumulation, or shorter \
sequences; at least 1.00 GiB was missing.

Allocated by, innermost first:

```
functional.py:116 linear
model.py:128 forward
```

Rule: live memory takes 80.0 % of the room, or 85.0 % with the request, and no other \
cause is major.

Not recorded:

- The allocator's history: free blocks, growth by line and what lived at the error. It \
is recorded by default on CUDA devices: RecordConfig(oom=OomConfig(history=True)).

## Ended by an exception; rank 0, step 2

Rank 0 ended by an exception after step 2.
"""


def test_markdown_word_by_word(crashed, say):
    text = re.sub(r"rank00001-[-\w]+\.events", "FILE", say(crashed, "--md"))
    text = re.sub(r"\(\d{4}-.*UTC\)", "(TIME)", text)
    assert text.splitlines()[: GOLDEN.count("\n")] == GOLDEN.splitlines()
    assert "| peak allocated | 70.00 GiB |" in text


def test_text_opens_with_the_verdict(crashed, say):
    lines = say(crashed).splitlines()
    assert lines[2].startswith(
        "  Out of memory: really full; rank 1, device 0, step 40, backward"
    )
    assert "really full" in lines[3]
    assert any("caveat: from the report alone" in line for line in lines)


def test_json_holds_all_of_it(crashed, say):
    (run,) = json.loads(say(crashed, "--json"))["runs"]
    assert run["findings"]["num_errors"] == 1
    (one,) = errors_in(run["findings"])
    assert one["key"] == "really_full"
    assert one["rank"] == 1
    assert one["figures"]["requested"] == 2 * GIB
    assert {e["key"] for e in one["evidence"] if e["decisive"]} == {"held", "full"}
    (peer,) = one["peers"]
    assert peer["rank"] == 0
    assert peer["peak_bytes"] == 70 * GIB
    assert peer["ended"] == "exception"


def test_a_history_is_read_to_the_end(tmp_path, say):
    run = RunBuilder(tmp_path / "exp")
    case = oom_case("fitting_block_free", 10_005)
    rank = run.rank(0)
    add_error(rank, case)
    rank.close()
    (found,) = json.loads(say(tmp_path, "--json"))["runs"]
    (one,) = errors_in(found["findings"])
    assert one["analysed"] is True
    assert one["key"] == "fitting_block_free"
    assert "another stream" in say(tmp_path) or "memory pool" in say(tmp_path)


def test_snapshots_are_taken_by_name(tmp_path, say):
    case = oom_case("imbalance", 10_006)
    paths = case.write(tmp_path)
    (run,) = json.loads(say(*paths, "--json"))["runs"]
    (one,) = errors_in(run["findings"])
    assert one["key"] == "imbalance"
    assert one["rank"] == case.label.rank
    alone: dict[str, Any] = json.loads(say(paths[case.label.rank], "--json"))
    (one,) = errors_in(alone["runs"][0]["findings"])
    assert one["key"] != "imbalance"
    assert "# " in say(paths[case.label.rank], "--md")


def test_a_file_that_is_none_is_told_and_the_others_are_read(tmp_path, say, capsys):
    case = oom_case("really_full", 10_007)
    paths = case.write(tmp_path)
    other = tmp_path / "notes.pickle"
    other.write_bytes(b"\x80\x04cos\nsystem\n.")
    assert "no such file" in say(tmp_path / "gone.pickle", code=2)
    assert "notes.pickle" in say(other, code=2)
    assert main(["report", str(paths[case.label.rank]), str(other), "--json"]) == 0
    printed = capsys.readouterr()
    assert "notes.pickle" in printed.err
    assert json.loads(printed.out)["runs"][0]["findings"]["num_errors"] == 1


def test_a_run_without_errors_says_so(tmp_path, say):
    rank = RunBuilder(tmp_path / "exp").rank(0)
    rank.steps(np.arange(3), allocated_peak_bytes=np.full(3, 1.0 * GIB))
    rank.close()
    assert "No out-of-memory error was recorded." in say(tmp_path, "--md")
    assert "Out of memory" not in say(tmp_path)


def test_names_from_files_are_no_markup(tmp_path, say):
    """A message or a function may hold anything: cells stay cells, fences stay shut."""
    rank = RunBuilder(tmp_path / "exp").rank(0)
    add_report(
        rank,
        exception={"type": "X", "message": "a | b ``` <script>\x1b[31m [x](y)"},
        spans=["evil | span\x1b[2J"],
    )
    rank.close()
    text = say(tmp_path, "--md")
    assert "\x1b" not in text
    assert "<script>" not in text.replace("\\<script>", "")
    assert "evil \\| span" in text


def test_text_and_markdown_exclude_each_other(tmp_path):
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path), "--md", "--json"])


def test_how_ranks_ended_is_told_in_every_form(say, tmp_path):
    run = RunBuilder(tmp_path / "run")
    for number, (how, message) in enumerate(
        [("exception", "ValueError: \x1b[31mboom"), ("lost", ""), ("lost", "")]
    ):
        rank = run.rank(number, world_size=3)
        rank.steps(range(3), rss_bytes=[1 << 20] * 3)
        if how != "lost":
            rank.close(how, message, step=3, phase="val")
    text = say(tmp_path)
    said = "Rank 0 ended by an exception in step 3 (val): ValueError:  [31mboom."
    assert f"  {said}\n" in text
    assert text.count("without closing its recording:") == 2
    assert text.count("MEMBOARD_OOM_ON_SIGTERM=1") == 1
    (found,) = json.loads(say(tmp_path, "--json"))["runs"]
    ends = [
        one for one in found["findings"]["findings"] if one["key"].startswith("ended")
    ]
    assert [one["key"] for one in ends] == ["ended_exception", "ended_lost"]
    assert len(ends[1]["others"]) == 1
    assert "1 more rank stopped so too." in say(tmp_path, "--md")
