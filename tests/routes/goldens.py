"""All that is said about one input, page by page, and how it is compared."""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.routes.asked import DROP, FILES, QUESTIONS, Question, learn
from tests.routes.asking import Plugin, command
from tests.routes.written import cut, replaced, written

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWERS = Path(__file__).parent / "answers"
_MOST_LINES = 160
_MOST_DIFF = 60
_CONTEXT = 2
_MOST_REPEATED = 60
"""Longer answers that another run of the input had as well stand there alone."""


def pages_of(logdir: Path) -> dict[str, str]:
    """By page: everything the routes and the command say about a logdir."""
    plugin = Plugin(logdir)
    pages: dict[str, list[str]] = defaultdict(list)
    names = {str(logdir): "<logdir>"}
    for page, text in _answers(plugin, names):
        pages[page].append(text)
    for form in ("text", "md", "json"):
        pages[f"report_{form}"].append(_report(logdir, form))
    names = {found: name for found, name in names.items() if len(found) >= 8}
    return {
        page: replaced("\n\n".join(texts), names) + "\n"
        for page, texts in pages.items()
    }


def shell_of(logdir: Path, dropped: bytes) -> str:
    """What serves the page itself, and a file that is dropped onto it."""
    plugin = Plugin(logdir)
    texts = [
        f"## {path}\n{written(plugin.file(path))}" for path in sorted(FILES.values())
    ]
    answer = plugin.send(DROP, {"name": "mine.pickle"}, dropped)
    texts.append(f"## /{DROP}\n{written(_body(answer))}")
    names = {str(logdir): "<logdir>"}
    if "answer" in answer:
        names[answer["answer"]["run"]] = "<run dropped>"
        names[answer["answer"]["history"]] = "<history dropped>"
    return replaced("\n\n".join(texts), names) + "\n"


def routes() -> set[str]:
    """The routes that have questions."""
    return {question.route for question in QUESTIONS} | set(FILES) | {DROP}


def _answers(plugin: Plugin, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(page, text) of every question; notes in `names` what differs from run to run."""
    first = plugin.ask("runs", {})["answer"]
    runs = {one["id"]: one for one in first["runs"]}
    names.update({key: f"<run {one['name']}>" for key, one in runs.items()})
    for question in QUESTIONS:
        if not question.of_run:
            yield question.page, _asked(plugin, question, {}, runs, "")
    first_with: dict[tuple[int, str], str] = {}
    for key, run in sorted(runs.items(), key=lambda item: item[1]["name"]):
        known = {"run": key}
        for number, question in enumerate(QUESTIONS):
            if question.of_run:
                if question.route == "trace":
                    # The straggler is known once the traces of all ranks are open.
                    plugin.ask("distributed", known)
                text = _asked(plugin, question, known, runs, run["name"], names)
                head, _, body = text.partition("\n")
                same = first_with.setdefault((number, body), run["name"])
                is_said = same != run["name"] and len(body) > _MOST_REPEATED
                text = f"{head}\nas of {same}" if is_said else text
                yield question.page, text


def _asked(
    plugin: Plugin,
    question: Question,
    known: dict[str, str],
    runs: dict[str, Any],
    of: str,
    names: dict[str, str] | None = None,
) -> str:
    shown = " ".join(f"{k}={v}" for k, v in question.words.items() if k != "run")
    head = f"## {of} /{question.route} {shown}".rstrip()
    try:
        words = {key: text.format_map(known) for key, text in question.words.items()}
    except KeyError as missing:
        return f"{head}\nnot asked: no {missing.args[0]}"
    found = plugin.ask(question.route, words)
    if "answer" in found:
        learn(question.route, found["answer"], known)
        if names is not None:
            _name_ids(question.route, found["answer"], names)
    return f"{head}\n{written(_body(found, runs))}"


def _name_ids(route: str, answer: dict[str, Any], names: dict[str, str]) -> None:
    """Ids that hold places in files, or hashes of paths."""
    if route == "histories":
        for number, one in enumerate(answer["histories"], start=1):
            names.setdefault(one["reference"]["id"], f"<history {number}>")
    if route in ("traces", "trace_reports"):
        listed = answer["files" if route == "traces" else "reports"]
        for number, one in enumerate(listed, start=1):
            names.setdefault(one["id"], f"<{route[:-1]} {number}>")


def _body(found: dict[str, Any], runs: dict[str, Any] | None = None) -> Any:
    """What is written of an answer: a run's summary stands in `/runs` alone."""
    if "answer" not in found:
        return found
    body = {k: v for k, v in found["answer"].items() if k != "$response"}
    run = body.get("run")
    if runs and isinstance(run, dict):
        listed = runs.get(run["id"], {})
        other = {k: v for k, v in run.items() if v != listed.get(k)}
        body["run"] = {"as in /runs, but": other} if other else "as in /runs"
    return body


def _report(logdir: Path, form: str) -> str:
    words = [] if form == "text" else [f"--{form}"]
    said = command("report", *words, str(logdir))
    head = f"## memboard report {' '.join(words)}".rstrip() + f" -> {said['code']}"
    said["out"] = said["out"].replace(str(logdir), "<logdir>")
    body = cut(said["out"], _MOST_LINES)
    if form == "json" and said["out"]:
        report = json.loads(said["out"])
        for run in report["runs"]:
            # Their answers stand at their routes; test_report_traces holds that they are.
            run["trace"] = run["trace"] and sorted(run["trace"])
        body = written(report)
    return "\n".join(filter(None, [head, body, said["err"]]))


def difference(name: str, text: str, *, update: bool) -> str:
    """A short diff between the golden file and the text; empty where they are equal."""
    path = ANSWERS / f"{name}.txt"
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    if before == text:
        return ""
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return ""
    lines = list(
        difflib.unified_diff(
            before.splitlines(),
            text.splitlines(),
            f"{name} (golden)",
            f"{name} (now)",
            lineterm="",
            n=_CONTEXT,
        )
    )
    more = len(lines) - _MOST_DIFF
    shown = lines[:_MOST_DIFF] + ([f"... {more} lines more"] if more > 0 else [])
    return "\n".join(shown)
