"""Code named in settings: what it leads to, and what is said where it leads nowhere."""

from __future__ import annotations

import collections
import functools
import os
import sys

import pytest

import memboard as mb
from memboard.collector.config import RecordConfig, load
from memboard.collector.config.sections import ActivationsConfig, HooksConfig
from memboard.collector.config.settings import check_code
from memboard.collector.config.values import (
    UNCHANGED,
    can_be_imported,
    code_name,
    is_dotted,
    resolve,
    unchanged,
)
from memboard.collector.errors import ConfigError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the user's; `write` adds a module to it."""
    folder = tmp_path / "mine_for_hooks"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    # Afterwards: what an import of another thread looks up here is remembered.
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name, text):
        (folder / f"{name}.py").write_text(text)

    yield write
    for name in [n for n in sys.modules if n.partition(".")[0] == "mine_for_hooks"]:
        del sys.modules[name]


def error_of(name):
    with pytest.raises(ConfigError) as raised:
        resolve(name, "hooks.reset")
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("os.getcwd", os.getcwd),
        ("os.path.join", os.path.join),
        ("collections.OrderedDict.fromkeys", collections.OrderedDict.fromkeys),
        (UNCHANGED, unchanged),
    ],
)
def test_a_dotted_name_leads_through_modules_and_attributes(name, code):
    assert resolve(name, "any.key") == code


def test_a_module_is_imported_when_it_is_named(package):
    package(
        "deep", "class Hooks:\n    @staticmethod\n    def reset(module): return 7\n"
    )
    assert "mine_for_hooks.deep" not in sys.modules
    assert resolve("mine_for_hooks.deep.Hooks.reset", "hooks.reset")(None) == 7
    assert resolve(print, "hooks.reset") is print, "a callable is itself"


@pytest.mark.parametrize("code", [os.getcwd, unchanged, dict, dict.fromkeys])
def test_names_lead_back(code):
    if can_be_imported(code_name(code)):
        assert resolve(code_name(code), "any.key") == code


def test_what_has_no_name_is_described():
    assert code_name(lambda: 0).endswith(
        "test_what_has_no_name_is_described.<locals>.<lambda>"
    )
    assert code_name(functools.partial(print)) == "<functools.partial>"
    for code in (lambda: 0, functools.partial(print)):
        assert not is_dotted(code_name(code))
        assert not can_be_imported(code_name(code))
    assert not can_be_imported("__main__.hook")


def test_a_package_that_is_not_there():
    assert error_of("no_such_package.hooks.reset") == (
        "'hooks.reset' names no_such_package.hooks.reset, which cannot be imported"
        " (ModuleNotFoundError: No module named 'no_such_package'). Install its package"
        " or put its folder on PYTHONPATH, or correct the name."
    )


def test_a_name_that_its_module_lacks(package):
    package("own", "def reset_state(module): ...\n")
    assert error_of("mine_for_hooks.own.reset_stat") == (
        "'hooks.reset' names mine_for_hooks.own.reset_stat, but mine_for_hooks.own has"
        " no 'reset_stat'. Did you mean 'reset_state'? Correct the name, or remove it."
    )
    assert "mine_for_hooks has no 'onw'. Did you mean 'own'?" in error_of(
        "mine_for_hooks.onw.reset"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import not_installed_here", "No module named 'not_installed_here'"),
        ("def broken(:", "SyntaxError"),
        ("raise RuntimeError('no licence\\nsecond line')", "RuntimeError: no licence)"),
        ("import sys; sys.exit('usage')", "SystemExit: usage"),
    ],
)
def test_a_module_that_fails_while_it_is_imported(package, text, reason):
    package("bad", text + "\n")
    message = error_of("mine_for_hooks.bad.hook")
    assert reason in message
    assert "cannot be imported" in message
    assert "\n" not in message


def test_what_cannot_be_called():
    assert error_of("os.sep") == (
        "'hooks.reset' names os.sep, which is a str and cannot be called. Name a"
        " function."
    )
    assert "os.path, which is a module and cannot" in error_of("os.path")


def test_record_names_the_key_before_training(tmp_path):
    with pytest.raises(ConfigError, match=r"'hooks\.post_forward' names os\.nothing"):
        mb.record(tmp_path, hooks={"post_forward": "os.nothing"})
    with pytest.raises(ConfigError, match=r"'schedule\.choose' names os\.sep"):
        mb.record(tmp_path, schedule={"choose": "os.sep"})
    assert list(tmp_path.iterdir()) == []


def test_what_is_switched_off_is_not_imported():
    for section in ("hooks", "activations"):
        key = "reset" if section == "hooks" else "functions"
        named = {section: {"enabled": False, key: ["no.such", "no.such"]}}
        check_code(load(named))
        with pytest.raises(ConfigError):
            check_code(load(named, **{section: True}))


def test_callables_in_keywords_are_kept_and_recorded_by_name():
    def inner(module):
        return module

    config = load(hooks={"reset": inner, "pre_forward": [os.getcwd]})
    assert config.hooks == HooksConfig(reset=(inner,), pre_forward=(os.getcwd,))
    check_code(config)
    plain = config.to_plain()["hooks"]
    assert plain["pre_forward"] == [f"{os.getcwd.__module__}.getcwd"]
    assert plain["reset"][0].endswith(".inner")
    assert load(config) == config, "settings made before keep the callables"


def test_the_same_function_may_stand_twice():
    pair = ActivationsConfig(functions=(unchanged, unchanged))
    assert RecordConfig(activations=pair).activations.functions == (unchanged,) * 2
