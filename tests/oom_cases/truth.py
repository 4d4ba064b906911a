"""Truths of the cases, and a judge that reads a report from the outside.

A verdict is right where its sentence names an accepted cause and its words hold all that
an expert would say and nothing that an expert would not. No wording is prescribed: every
expectation is a group of alternatives.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

# What a cause sounds like in a sentence; the first that matches is what was said.
ANY = r"(?:[^.]|\.\d)"  # up to the end of the sentence; 1.5 GiB does not end it
SAID = {
    "unsure": rf"(why|cause|reason){ANY}{{0,30}}(not|never|n't) (been )?(recorded|known)"
    r"|nothing (that was recorded )?(says|said) why",
    "cycle": r"(reference )?cycles?\b|gc\.collect|garbage|collector",
    "pending": r"\bpending\b|await(s|ing|ed)?\b|not yet (been )?(reusable|free)"
    rf"|wait(s|ing|ed)? (for|on) {ANY}{{0,40}}stream",
    "limit": rf"memory[_ ]fraction|process{ANY}{{0,12}} (memory )?limit|limit (of|on|for) th\w+"
    r" process|\b(own|set|per-process|allocator's|torch's|memory) (limit|cap)\b|limited to"
    r"|\bcap of\b|\ballowed (only|at most|no more)",
    "other": r"other process|another process|outside (of )?(torch|pytorch)|not (held|reserved)"
    r" by (torch|pytorch)|non[- ]torch|something else (held|holds|had|has|used|uses)"
    r"|(beside|other than) (torch|pytorch)",
    "giant": r"single (request|allocation|giant)|(one|this) (request|allocation) (alone )?(was|is"
    rf"|asks|asked|exceeds|needs){ANY}{{0,40}}(more|larger|bigger|than)|(larger|bigger|more)"
    r" than (the (whole |entire )?(device|gpu|card)|everything|all)|(could|can) never fit"
    rf"|(request|allocation){ANY}{{0,40}} exceeds|giant|times (what|as much as)",
    "leak": r"\bleak|\bgr[eo]w(s|n|ing|th)?\b|retain(ed|s|ing)?\b|kept (from|across|over)"
    r"|pil(es|ed|ing) up|accumulat(es|ed|ing)\b|more (in|at|with|each|every|per) (each|every|"
    r"step)|never freed|from step to step|across steps",
    "fragmented": rf"fragment|largest free block{ANY}{{0,60}}(less|smaller|only|below|too)"
    r"|scattered|no (single )?free block (was|is) (large|big)|in (\d+ )?pieces",
    "pool": rf"(graph|private|another|other|different){ANY}{{0,30}} pools?\b",
    "fits": rf"\bfits\b|\bfitted|would have (fit|served)|free block{ANY}{{0,60}}(larger|bigger)"
    rf"|(larger|bigger|more) than (the|this|that) request{ANY}{{0,40}}free|(enough|large"
    rf" enough|big enough) for (it|the request)|free{ANY}{{0,30}} in the request's own pool",
    "full": rf"\bfull\b|live{ANY}{{0,60}}of (what|all|the)|used up|(do|does|did) not fit"
    r"|filled|fills|needs more (memory )?than|took (all|the room)|exhausted",
}
# A condition is no claim.
CONDITION = re.compile(r"\b(if|unless|whether)\b(?:[^.,;:]|\.\d)*", re.IGNORECASE)
NEGATED = re.compile(
    r"\b(not|no|never|neither|nor|without|rather than|instead of|isn't|wasn't|rules? out)"
    r"( (a|an|any|the|being|sign of|signs of|evidence of))*"
    r" (memory )?(leak\w*|fragment\w+|grow\w*|full|pending|limit\w*)(,? (a|or|nor) \w+)?",
    re.IGNORECASE,
)
LEAK_WORDS = (
    r"\bleak",
    r"\bgrow(s|ing|n|ths?)? (by|from step|steadily|each|every|per|with every|across)",
    r"grew (by|from step|steadily|each|every|per)",
    r"(kept|retained) (from|across|over) (step|iteration|round)",
    r"from step to step",
)
# A condition on what is not known.
HEDGES = (r"\bif\b|\bunless\b|not known|unknown|not recorded|assum|--capacity",)
# A claim that is wrong wherever something else is the matter.
REALLY_FULL = r"(really|truly|actually|completely) full"
UNCONDITIONAL = rf"{REALLY_FULL}(?!{ANY}{{0,160}}\b(if|unless)\b)"
OTHER_PROCESS = r"(?<!if )(?<!unless )another process"
SMALLER_STEP = (
    r"batch",
    r"checkpoint",
    r"shorter|sequence length",
    r"offload",
    r"shard|FSDP|ZeRO",
)


def line(file: str, at: int) -> str:
    """Match `file:12`, or "file, lines 3, 12 and 40"."""
    return rf"{re.escape(file)}(:{at}\b|\D[^;|]{{0,80}}?\b{at}\b)"


@dataclasses.dataclass(frozen=True)
class Truth:
    """What a right verdict says; `causes` stand with the truest one first."""

    causes: tuple[str, ...]
    must: tuple[tuple[str, ...], ...] = ()
    must_not: tuple[str, ...] = ()
    # Keys of the verdict in JSON, which are figures and no opinion.
    facts: tuple[tuple[str, Any], ...] = ()
    # What the first advice is about, where only one can come first.
    first_advice: str = ""
    # Given with --capacity, where the command has that option.
    capacity: int | None = None


@dataclasses.dataclass(frozen=True)
class Case:
    """One snapshot with its truth."""

    kind: str
    seed: int
    snapshot: dict[str, Any]
    truth: Truth

    @property
    def name(self) -> str:
        """The name of its file, too."""
        return f"{self.kind}-{self.seed}"


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What was said about a case, and what is wrong with it."""

    case: str
    kind: str
    cause: str
    said: str
    cause_right: bool
    missing: tuple[str, ...]
    forbidden: tuple[str, ...]
    wrong_facts: tuple[str, ...]
    sentence: str

    @property
    def right(self) -> bool:
        """Cause, words and figures all hold."""
        wrong = (*self.missing, *self.forbidden, *self.wrong_facts)
        return self.cause_right and not wrong


def leading(report: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error that the report leads with: the first finding about one."""
    for run in report["runs"]:
        for found in run["findings"]["findings"]:
            if (found["state"] or {}).get("is_out_of_memory"):
                return found
    return None


def figure_of(oom: dict[str, Any] | None, key: str) -> Any:
    """A figure of a finding: what it says of itself, or its evidence in bytes."""
    evidence = {one["key"]: one["value"] for one in (oom or {}).get("evidence", ())}
    return evidence.get(key.removesuffix("_bytes"), (oom or {}).get(key))


def said_cause(sentence: str) -> str:
    """Name the cause that a sentence gives."""
    plain = CONDITION.sub(" ", NEGATED.sub(" ", sentence))
    for cause, pattern in SAID.items():
        if re.search(pattern, plain, re.IGNORECASE):
            return cause
    return "unsure"


def judge(
    case: Case, report: dict[str, Any] | None, text: str, *, told: bool = False
) -> Judgement:
    """Judge the report of one file: its JSON, and its text where it names no error.

    Where the device's size was `told`, only the truest cause is accepted.
    """
    truth = case.truth
    accepted = truth.causes[:1] if told else truth.causes
    oom = leading(report) if report else None
    first = ""
    if oom is None:
        sentence, words = "", text
        said = "none"
    else:
        sentence = oom["sentence"]
        advice = [one["text"] + " " + one.get("setting", "") for one in oom["advice"]]
        words = " ".join([sentence, oom["state"]["held_sentence"], *advice])
        first = advice[0] if advice else ""
        said = said_cause(sentence)
        if said == "unsure" and oom["key"] != "unsure":
            said = said_cause(oom["key"].replace("_", " "))
    plain = NEGATED.sub(" ", words)
    claims = CONDITION.sub(" ", plain)
    missing = [
        group[0]
        for group in truth.must
        if not any(re.search(one, words, re.IGNORECASE) for one in group)
    ]
    if truth.first_advice and not re.search(truth.first_advice, first, re.IGNORECASE):
        missing.append(f"as the first advice: {truth.first_advice}")
    forbidden = [
        one
        for one in truth.must_not
        if all(re.search(one, part, re.IGNORECASE) for part in (plain, claims))
    ]
    facts = []
    for key, value in truth.facts:
        figure = figure_of(oom, key)
        if figure != value:
            facts.append(f"{key}={figure!r} instead of {value!r}")
    return Judgement(
        case.name,
        case.kind,
        truth.causes[0],
        said,
        said in accepted,
        tuple(missing),
        tuple(forbidden),
        tuple(facts),
        sentence or text.strip()[:200],
    )
