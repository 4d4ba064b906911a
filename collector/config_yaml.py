"""Settings as the text of a YAML file that `collector.config.load` takes back."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

from collector.config import RecordConfig, sections, settings
from collector.config_code import can_be_imported
from collector.config_table import meanings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WIDTH: Final = 88


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
    for name in dict.fromkeys(path.partition(".")[0] for path in settings()):
        if name not in left:
            continue
        value = left.pop(name)
        if text:
            text.append("")
        if comments is None:
            text += _comment(meanings(RecordConfig)[name], "")
        if name not in sections():
            text += _comment((comments or {}).get(name, ""), "")
            text += _leaf(name, name, value, "")
        elif isinstance(value, dict):
            text += [f"{name}:", *_section(name, value, comments)]
        else:
            left[name] = value
    for name, value in left.items():
        text += _comment(f"not a setting of this version: {name}: {_flow(value)}", "")
    return "\n".join([*text, ""])


def _section(
    name: str, leaves: Mapping[str, Any], comments: Mapping[str, str] | None
) -> Iterator[str]:
    owner: type = type(sections()[name])
    known = meanings(owner) if comments is None else {}
    for leaf in sorted(leaves, key=[*_order(name), *leaves].index):
        path = f"{name}.{leaf}"
        if path in settings():
            yield from _comment((comments or {}).get(path) or known.get(leaf, ""), "  ")
            yield from _leaf(path, leaf, leaves[leaf], "  ")
        else:
            unknown = f"not a setting of this version: {leaf}: {_flow(leaves[leaf])}"
            yield from _comment(unknown, "  ")


def _order(name: str) -> list[str]:
    return [p.partition(".")[2] for p in settings() if p.startswith(f"{name}.")]


def _leaf(path: str, key: str, value: Any, indent: str) -> Iterator[str]:
    """One key and its value; code that no other process could import as a comment."""
    setting = settings()[path]
    if setting.takes_code and value is not None:
        names = value if isinstance(value, list) else [value]
        lost = [name for name in names if not can_be_imported(str(name))]
        for name in lost:
            yield from _comment(
                f"was given as code that has no name to import: {name}", indent
            )
        kept = [name for name in names if name not in lost]
        # One of a pair is none, and a text where there was one.
        pair = path == "activations.functions"
        kept = [] if pair and lost else kept
        value = kept if setting.many else next(iter(kept), setting.default)
    yield f"{indent}{key}: {_flow(value)}"


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
