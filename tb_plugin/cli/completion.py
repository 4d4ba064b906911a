"""Print a script with which a shell completes verbs and options.

Add its output to what the shell reads when it starts:

  bash  memboard completion bash >> ~/.bashrc
  zsh   memboard completion zsh >> ~/.zshrc
  fish  memboard completion fish > ~/.config/fish/completions/memboard.fish
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class _Option(NamedTuple):
    name: str
    help: str
    choices: tuple[str, ...]
    takes_value: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard completion`."""
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="the shell's name")


def run(options: argparse.Namespace) -> int:
    from memboard.tb_plugin.cli import VERBS, parser_of, verbs_of

    verbs = {
        verb: (str(parser.description).partition("\n")[0], tuple(_options_of(parser)))
        for verb, parser in verbs_of(parser_of(*VERBS)).items()
    }
    print("\n".join(_SCRIPTS[options.shell](verbs)))
    return 0


def _options_of(parser: argparse.ArgumentParser) -> Iterator[_Option]:
    for action in parser._actions:  # noqa: SLF001  # argparse lists them nowhere else
        text = "" if action.help in {None, argparse.SUPPRESS} else str(action.help)
        help_text = text.partition("(default")[0].replace("%%", "%").strip()
        choices = tuple(map(str, action.choices or ()))
        for option in action.option_strings or choices:
            if option.startswith("--") or not action.option_strings:
                yield _Option(option, help_text, choices, action.nargs != 0)


def _bash(verbs: _Verbs) -> Iterator[str]:
    """Also zsh's, which runs bash's completions."""
    yield "_memboard() {"
    yield '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"'
    yield '  local words=""'
    yield '  case "${COMP_WORDS[1]} $before $word" in'
    for verb, (_, options) in verbs.items():
        dashed = [option for option in options if option.name.startswith("--")]
        for option in dashed:
            if option.choices:
                yield f'    "{verb} {option.name} "*) words="{" ".join(option.choices)}" ;;'
        names = " ".join(option.name for option in dashed)
        yield f'    "{verb} "*" -"*) words="{names}" ;;'
        if plain := " ".join(option.name for option in options if option not in dashed):
            yield f'    "{verb} "*) words="{plain}" ;;'
    yield "  esac"
    yield f'  if ((COMP_CWORD == 1)); then words="{" ".join(verbs)}"; fi'
    yield '  COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield "complete -o default -F _memboard memboard"


def _zsh(verbs: _Verbs) -> Iterator[str]:
    yield "autoload -Uz compinit bashcompinit && compinit && bashcompinit"
    yield from _bash(verbs)


def _fish(verbs: _Verbs) -> Iterator[str]:
    for verb, (summary, options) in verbs.items():
        first = "complete -c memboard -n __fish_use_subcommand -f"
        yield f"{first} -a {verb} -d {_quoted(summary)}"
        after = f"complete -c memboard -n '__fish_seen_subcommand_from {verb}'"
        for option in options:
            description = f"-d {_quoted(option.help)}"
            if not option.name.startswith("--"):
                yield f"{after} -f -a {option.name} {description}"
            elif option.choices:
                yield f"{after} -l {option.name[2:]} -x -a '{' '.join(option.choices)}' {description}"
            else:
                yield f"{after} -l {option.name[2:]}{' -r' * option.takes_value} {description}"


def _quoted(text: str) -> str:
    """As one word of fish, whose quotes keep backslashes and quotes behind them."""
    plain = " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{plain}'"


_SCRIPTS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish}

if TYPE_CHECKING:
    _Verbs = Mapping[str, tuple[str, tuple[_Option, ...]]]
