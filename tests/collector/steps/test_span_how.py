"""What is special about a span: found once per category, and bounded."""

from __future__ import annotations

import torch

import collector
from collector.steps.parts import INDEX
from collector.steps.spans import how as span_how
from collector.steps.spans.how import PLAIN, USER, How, how_of
from collector.steps.spans.log import SUMMED


def test_a_category_is_looked_at_once():
    assert collector.span("x", category=USER, args={})._how is PLAIN
    first = collector.span("x", category="optimizer")._how
    assert first == How(category="optimizer", part=INDEX["optimizer"])
    assert collector.span("y", category="optimizer", args={"n": 1})._how is first


def test_a_trainers_own_spans_are_not_summed_up():
    assert how_of("callback", None, False).flags == 0
    assert how_of("mine", None, False).flags == SUMMED


def test_what_is_special_is_made_for_each():
    assert how_of(USER, "skip", False).is_special
    assert how_of(USER, None, True).is_special
    assert how_of(USER, None, True) == How(memory=True, is_special=True)


def test_made_up_categories_are_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(span_how, "known_hows", {USER: PLAIN})
    for number in range(1000):
        assert how_of(f"made {number}", None, False).category == f"made {number}"
    assert len(span_how.known_hows) <= 256


def test_what_is_no_text_becomes_one():
    assert how_of(7, None, False).category == "7"
    assert how_of(["odd"], None, False).category == "['odd']"


def test_args_are_the_spans_own_and_bounded():
    given = {"n": 1}
    one = collector.span("x", category="c", args=given)
    given["n"] = 2
    assert one._args == {"n": 1}
    many = {f"{'k' * 200}{at}" if at == 3 else f"k{at}": at for at in range(100)}
    kept = collector.span("x", args=many)._args
    assert len(kept) <= 32
    assert max(map(len, kept)) <= 100
    odd = collector.span("x", args={1: object(), "t": torch.ones(2), "s": "y" * 900})
    tensor = "<Tensor on cpu, shape (2,)>"
    assert odd._args == {"1": "<object>", "t": tensor, "s": "y" * 500}
