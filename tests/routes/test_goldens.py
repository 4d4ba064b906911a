"""Everything that routes and reports say, against golden answers that were reviewed.

What changed on purpose is taken over by `python -m tests.routes.update [input]`; the
diff of `answers/` then says what the change does, and is reviewed with it.
"""

from __future__ import annotations

import pickle
import time

import pytest

from tests.made_snapshots import everything
from tests.routes.asking import Plugin
from tests.routes.goldens import ANSWERS, difference, pages_of, routes, shell_of
from tests.routes.inputs import INPUTS


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def update(request) -> bool:
    plugins = request.config.pluginmanager.get_plugins()
    return any(getattr(plugin, "writes_goldens", False) for plugin in plugins)


def differences(answers: dict[str, str], *, update: bool) -> str:
    """From what was reviewed, of all pages; "" for none."""
    texts = (difference(name, text, update=update) for name, text in answers.items())
    return "\n\n".join(filter(None, texts))


def test_every_route_is_asked(tmp_path):
    assert set(Plugin(tmp_path).routes) == routes()


def test_every_route_answers_somewhere():
    said = "\n".join(path.read_text() for path in ANSWERS.rglob("*.txt"))
    for route in routes():
        parts = said.split(f" /{route}")[1:]
        answers = [part.split("\n", 1)[1].split("\n", 1)[0] for part in parts]
        assert any("not asked" not in one for one in answers), route


@pytest.mark.parametrize("name", INPUTS)
def test_golden_answers(name, tmp_path, update):
    logdir = tmp_path / "logdir"
    logdir.mkdir()
    INPUTS[name].make(logdir)
    pages = pages_of(logdir)
    known = {path.stem for path in (ANSWERS / name).glob("*.txt")}
    if update:
        for page in known - pages.keys():
            (ANSWERS / name / f"{page}.txt").unlink()
    else:
        assert known == pages.keys()
    answers = {f"{name}/{page}": text for page, text in pages.items()}
    assert differences(answers, update=update) == ""


def test_golden_shell(tmp_path, update):
    text = shell_of(tmp_path, pickle.dumps(everything()))
    assert differences({"shell": text}, update=update) == ""
