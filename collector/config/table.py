"""The settings as text: a Markdown table, a YAML file, and mappings for type checkers.

`python -m memboard.collector.config.table --markdown | --write FILE | --yaml | --options`. The
page tb_plugin/docs/settings.md has the table between two markers, examples/fsdp2.yaml is
the YAML file of the defaults, collector/config/options.py the mappings; tests fail when
they are out of date.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.config.layers import variable
from memboard.collector.config.sections import fields_of
from memboard.collector.config.settings import (
    RecordConfig,
    meanings,
    sections,
    settings,
)
from memboard.collector.config.values import can_be_imported, written
from memboard.collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memboard.collector.config.values import Setting

BEGIN: Final = "<!-- config:begin -->"
END: Final = "<!-- config:end -->"

_HEAD: Final = (
    "| key | what it may be | default | environment variable | meaning |",
    "|---|---|---|---|---|",
)
_WIDTH: Final = 88


def markdown() -> str:
    """The table of every key, in the order of `RecordConfig`, without a last newline."""
    rows = []
    for path, setting in settings().items():
        cells = (
            f"`{path}`",
            setting.expected,
            f"`{written(setting.default)}`",
            f"`{variable(path)}`",
            _meaning(path, setting),
        )
        rows.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join([*_HEAD, *rows])


def _meaning(path: str, setting: Setting) -> str:
    """What a key does, with the short form where it has one."""
    section_name, _, leaf = path.partition(".")
    if not leaf:
        paced = " Seconds between samples." * ({bool, float} <= setting.kinds.keys())
        return meanings(RecordConfig)[section_name] + paced
    meaning = meanings(type(sections()[section_name]))[leaf]
    if leaf == "enabled":
        short = f"{meaning} Short: `{section_name}: {written(not setting.default)}`"
        also = "; so it is where its other keys are given"
        return short if setting.default else short + also
    if leaf == "url":
        return f"{meaning} Short: `{section_name}: s3://bucket/{{run_name}}`"
    return meaning


def replaced(text: str) -> str:
    """`text` with the table between its markers made anew.

    Raises:
        ConfigError: the markers are not there, once each and in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in after or END in after:
        raise ConfigError(f"put the lines {BEGIN} and {END} where the table belongs")
    return f"{before}{BEGIN}\n{markdown()}\n{END}{after}"


def as_yaml(
    plain: Mapping[str, Any],
    comments: Mapping[str, str] | None = None,
    heading: str = "",
) -> str:
    """The text of a file with these settings, in the order of `RecordConfig`.

    Args:
        plain: as `RecordConfig.to_plain` gives them and a recording's header holds
            them; keys may be missing.
        comments: what to say above a leaf, by its path. None: what each key means.
        heading: stands above all, as a comment.

    What no file can hold (a lambda) and keys that this version does not know (of a
    recording by a newer one) are kept as comments.
    """
    text = [*_comment(heading, "")]
    left = dict(plain)
    for name, meaning in meanings(RecordConfig).items():
        section = sections().get(name)
        if name not in left or (section and not isinstance(left[name], dict)):
            continue
        value = left.pop(name)
        text += ["", *_comment(meaning if comments is None else "", "")]
        if section is None:
            text += [*_leaf(name, value, "", (comments or {}).get(name, ""))]
            continue
        text.append(f"{name}:")
        meaning_by_leaf = {} if comments is not None else meanings(type(section))
        order = [*meanings(type(section)), *value]
        for leaf in sorted(value, key=order.index):
            path = f"{name}.{leaf}"
            comment = (comments or {}).get(path) or meaning_by_leaf.get(leaf, "")
            text += _leaf(path, value[leaf], "  ", comment)
    for name, value in left.items():
        text += _comment(_unknown(name, value), "")
    return "\n".join([*text[not heading :], ""])


def _leaf(path: str, value: Any, indent: str, comment: str) -> Iterator[str]:
    """One key and its value; code that no other process could import as a comment."""
    key = path.rpartition(".")[2]
    setting = settings().get(path)
    if setting is None:
        yield from _comment(_unknown(key, value), indent)
        return
    yield from _comment(comment, indent)
    if setting.takes_code and value is not None:
        names = value if isinstance(value, list) else [value]
        lost = [name for name in names if not can_be_imported(str(name))]
        for name in lost:
            yield from _comment(
                f"was given as code that has no name to import: {name}", indent
            )
        # One of a pair is none, and a text where there was one.
        pair = path == "activations.functions"
        kept = [] if pair and lost else [name for name in names if name not in lost]
        value = kept if setting.many else next(iter(kept), setting.default)
    yield f"{indent}{key}: {_flow(value)}"


def _unknown(name: str, value: Any) -> str:
    return f"not a setting of this version: {name}: {_flow(value)}"


def _flow(value: Any) -> str:
    """A value on one line, so that it reads back as the same."""
    import yaml

    text = yaml.safe_dump(
        value, default_flow_style=True, width=2**31, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _comment(text: str, indent: str) -> list[str]:
    start = f"{indent}# "
    lines = textwrap.wrap(
        " ".join(text.split()), _WIDTH - len(start), break_long_words=False
    )
    return [start + line for line in lines]


def defaults() -> str:
    """A YAML file of every setting with its default and its meaning."""
    heading = (
        "Every setting of a MemBoard recording, with its default. Leave out what you do"
        " not change. Give it to memboard.record(..., config=FILE), or name it in the"
        " environment variable MEMBOARD_CONFIG. Keywords of record win over MEMBOARD_*"
        " variables, those over this file, this file over the defaults. The variable of"
        " history.stacks is MEMBOARD_HISTORY_STACKS."
    )
    return as_yaml(RecordConfig().to_plain(), heading=heading)


_TYPED: Final = """\
\"""The settings as mappings, for type checkers: a wrong key or value is refused.

Written by `python -m memboard.collector.config.table --options`.
\"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from memboard.collector.config.sections import (
{imports}
    )
    from memboard.collector.config.values import Code
"""


def typed() -> str:
    """A module with a TypedDict of each section, and of all keywords of `record`."""
    kinds = {name: type(section).__name__ for name, section in sections().items()}
    imports = "\n".join(f"        {kind}," for kind in sorted(kinds.values()))
    text = [_TYPED.format(imports=imports)]
    keywords = []
    for name in fields_of(RecordConfig):
        kind = kinds.get(name)
        if kind is None:
            keywords.append(_typed_line(name, settings()[name]))
            continue
        options = kind.replace("Config", "Options")
        fields = fields_of(type(sections()[name]))
        text += ["", f"class {options}(TypedDict, total=False):"]
        text += [_typed_line(leaf, settings()[f"{name}.{leaf}"]) for leaf in fields]
        text.append("")
        short = " | bool" * ("enabled" in fields)
        short += " | str | Literal[False]" * ("url" in fields)
        keywords.append(f"    {name}: {kind} | {options}{short} | None")
    text += ["", "class RecordOptions(TypedDict, total=False):"]
    text += [*keywords, ""]
    return "\n".join(text)


def _typed_line(name: str, setting: Setting) -> str:
    """What a type checker lets a setting be; ranges are checked when it is given."""
    names = []
    if setting.words:
        names.append(f"Literal[{', '.join(map(json.dumps, setting.words))}]")
    if setting.takes_code:
        names.append("Code")
    elif setting.takes_text:
        names.append("str" if setting.many else "str | os.PathLike[str]")
    names += ["Mapping[str, Any]"] * setting.takes_options
    names += [kind.__name__ for kind in (int, float, bool) if kind in setting.kinds]
    names += ["None"] * (type(None) in setting.kinds and not setting.many)
    type_text = " | ".join(names)
    line = (
        f"    {name}: {type_text} | Sequence[{type_text}]"
        if setting.many
        else f"    {name}: {type_text}"
    )
    if len(line) <= _WIDTH:
        return line
    return f"    {name}: (\n        {type_text}\n        | Sequence[{type_text}]\n    )"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or write it into a file."""
    parser = argparse.ArgumentParser(
        prog="python -m memboard.collector.config.table",
        description="Lists every setting.",
    )
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--markdown", action="store_true", help="print the table")
    choice.add_argument(
        "--write", type=Path, metavar="FILE", help="renew it between its markers"
    )
    choice.add_argument("--yaml", action="store_true", help="print a file of defaults")
    choice.add_argument(
        "--options", action="store_true", help="print the mappings for type checkers"
    )
    options = parser.parse_args(arguments)
    if not options.write:
        printed = defaults() if options.yaml else markdown() + "\n"
        sys.stdout.write(typed() if options.options else printed)
        return 0
    try:
        text = options.write.read_text(encoding="utf-8")
        options.write.write_text(replaced(text), encoding="utf-8")
    except (OSError, ConfigError) as error:
        parser.error(f"{options.write}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
