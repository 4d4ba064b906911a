"""Arguments of spans: found once per category, the span's own, and bounded."""

from __future__ import annotations

import torch

import memboard as mb
from memboard.collector.steps.parts import INDEX
from memboard.collector.steps.spans import calls
from memboard.collector.steps.spans.calls import span_options
from memboard.collector.steps.spans.log import PLAIN, SUMMED, USER, SpanOptions


def test_a_category_is_looked_at_once():
    first = mb.span("x", category="optimizer")._options
    assert first == SpanOptions(category="optimizer", part=INDEX["optimizer"])
    assert mb.span("y", category="optimizer", args={"n": 1})._options is first
    assert mb.span("x", category=USER, args={})._options is PLAIN


def test_a_trainers_own_spans_are_not_summed_up():
    assert span_options("callback", None, False).flags == 0
    assert span_options("mine", None, False).flags == SUMMED


def test_what_is_special_is_made_for_each():
    assert span_options(USER, "skip", False).is_special
    assert span_options(USER, None, True) == SpanOptions(memory=True, is_special=True)


def test_made_up_categories_are_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(calls, "known_options", {USER: PLAIN})
    for number in range(1000):
        assert span_options(f"made {number}", None, False).category == f"made {number}"
    assert len(calls.known_options) <= 256
    assert span_options(7, None, False).category == "7"


def test_args_are_the_spans_own_plain_and_bounded():
    given = {"n": 1}
    one = mb.span("x", category="c", args=given)
    given["n"] = 2
    assert one._args == {"n": 1}
    assert mb.span("x", args={})._args is None
    many = {f"{'k' * 200}{at}" if at == 3 else f"k{at}": at for at in range(100)}
    kept = mb.span("x", args=many)._args
    assert len(kept) <= 32
    assert max(map(len, kept)) <= 100
    odd = {
        1: object(),
        "list": [1, 2.5, None, True, {"a": [object()]}],
        "t": torch.ones(2),
        "s": "y" * 900,
    }
    assert mb.span("x", args=odd)._args == {
        "1": "<object>",
        "list": [1, 2.5, None, True, {"a": "<list>"}],
        "t": "<Tensor on cpu, shape (2,)>",
        "s": "y" * 500,
    }
