"""Walks of a value through the house: the files of ours that are entered on its way.

`python -m tests.walks [--files]` executes them: a training step to the disk, that
recording to the Timeline's answer, a snapshot to the stack of a block, and a trace to the
table of operators. Processes that read untrusted files are not followed. The page's files
are those that its view imports, directly or not.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import shutil
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
FRONTEND = ROOT / "frontend" / "src"
STEP_TO_DISK, DISK_TO_TIMELINE, TIMELINES_PAGE = 49, 28, 97
SNAPSHOT_TO_STACK, TRACE_TO_OPERATORS = 60, 55
"""How many files each walk may enter: the goals, which format.md has too."""
_STEPS_BEFORE = 3
_LOOPS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
"""Of a module's body: only some versions of Python make functions of them."""
_IMPORT = re.compile(r'^(?:import|export)(?! type)[^"]*?from "(\.[^"]+)"', re.MULTILINE)


class Walk:
    """Files of a package whose functions are entered, in any thread, while it is on."""

    def __init__(self, package: str) -> None:
        self.files: set[str] = set()
        self._is_on = False
        self._below = f"{ROOT / '.package' / 'memboard' / package}/"
        self._package = package

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Threads that start meanwhile are watched too."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """What is entered now belongs to the walk."""
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def _called(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        # No module's or class's body, nor what is looped over there.
        is_function = code.co_flags & inspect.CO_OPTIMIZED
        is_loop = code.co_qualname in _LOOPS
        if self._is_on and event == "call" and is_function and not is_loop:
            name = code.co_filename
            if name.startswith(self._below):
                self.files.add(f"{self._package}/{name.removeprefix(self._below)}")


def step_to_disk(logdir: Path) -> set[str]:
    """One `rec.step()` and the write behind it, everything at its default."""
    import torch

    from memboard import record

    walk = Walk("collector")
    model = torch.nn.Linear(64, 64)
    with walk.watched(), record(str(logdir)) as recorder:
        for number in range(_STEPS_BEFORE + 1):
            model(torch.ones(4, 64)).sum().backward()
            if number < _STEPS_BEFORE:
                recorder.step()
        with walk.on():
            recorder.step()
            recorder.flush()
    return walk.files


def asked(logdir: Path, *routes: str) -> set[str]:
    """The plugin's files behind these routes and what they need to know first."""
    from tests.routes.asked import QUESTIONS, learn
    from tests.routes.asking import Plugin

    walk = Walk("tb_plugin")
    with walk.watched():
        plugin = Plugin(logdir)
        plugin.look_once()
        runs = plugin.ask("runs", {})["answer"]["runs"]
        known = {"run": str(runs[0]["id"])}
        with walk.on():
            for route in routes:
                question = next(one for one in QUESTIONS if one.route == route)
                words = {name: w.format(**known) for name, w in question.words.items()}
                answer = plugin.ask(route, words)
                assert answer["status"] == 200, answer
                learn(route, answer["answer"], known)
    return walk.files


def page(view: str) -> set[str]:
    """Files of the frontend that a view's module imports, and what those import."""
    found: set[str] = set()
    rest = [FRONTEND / "pages" / view]
    while rest:
        path = rest.pop()
        name = path.relative_to(ROOT).as_posix()
        if name in found:
            continue
        found.add(name)
        for target in _IMPORT.findall(path.read_text(encoding="utf-8")):
            inner = (path.parent / target).resolve()
            choices = (inner.with_name(inner.name + end) for end in (".ts", ".tsx"))
            rest += [one for one in choices if one.is_file()]
    return found


def walks() -> Iterator[tuple[str, int, set[str]]]:
    """Name of each walk, the most files that it should enter, and those that it enters."""
    from tests.kineto_files import trained

    recorded = ROOT / "tests" / "virtual" / "recorded" / "torch2.13_training.pickle.gz"
    with tempfile.TemporaryDirectory() as folder:
        run, snapshot, trace = (Path(folder) / n for n in ("run", "snapshot", "trace"))
        for logdir in (run, snapshot, trace):
            logdir.mkdir()
        yield "rec.step() to the disk", STEP_TO_DISK, step_to_disk(run / "one")
        yield "disk to /timeline", DISK_TO_TIMELINE, asked(run, "timeline")
        yield "the Timeline's page", TIMELINES_PAGE, page("timeline/timeline.tsx")
        shutil.copy(recorded, snapshot)
        routes = ("histories", "history", "allocations", "allocation_block", "stacks")
        files = asked(snapshot, *routes)
        yield "snapshot to a block's stack", SNAPSHOT_TO_STACK, files
        trained().write(trace / "host_1.1700000000000000000.pt.trace.json")
        files = asked(trace, "profile", "operators")
        yield "trace to /operators", TRACE_TO_OPERATORS, files


def main(arguments: list[str]) -> None:
    """Print how many files each walk enters; `--files` names them."""
    for name, goal, files in walks():
        print(f"{name:48} {len(files):>12} files   <= {goal}")
        if "--files" in arguments:
            folders = defaultdict(list)
            for file in sorted(files):
                folders[file.rpartition("/")[0]].append(file.rpartition("/")[2])
            for folder, inside in folders.items():
                print(f"  {folder}/: {' '.join(inside)}")


if __name__ == "__main__":
    main(sys.argv[1:])
