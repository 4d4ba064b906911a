"""The page's types: generated from the structs of the contract."""

from __future__ import annotations

import re

import pytest
from msgspec import Struct, defstruct

from memboard.tb_plugin.api.base import Unit
from memboard.tb_plugin.contract import typescript
from memboard.tb_plugin.contract.typescript import ContractError, interface, types_file


def member(annotation) -> str:
    text = interface(defstruct("Thing", [("one_field", annotation)]), {Unit: "Unit"})
    found = re.search(r"readonly oneField: (.*);", text)
    assert found is not None, text
    return found[1]


@pytest.mark.parametrize(
    "annotation", [dict[str, int], list[int], tuple[int, str], object]
)
def test_what_has_no_form_on_the_wire_is_refused_by_name(annotation):
    with pytest.raises(ContractError, match=r"Thing\.one_field"):
        member(annotation)


def test_a_description_cannot_close_its_comment_early():
    class Thing(Struct):
        """Bytes */ of it."""

        size_bytes: int

    assert interface(Thing, {}).startswith("/** Bytes * / of it. */\nexport interface")


def test_each_response_has_the_route_that_the_page_asks():
    block = types_file().partition("export interface Responses")[2]
    entries = re.findall(r"^  readonly (\w+): (\w+);$", block, re.MULTILINE)
    assert len(entries) > 30
    for route, name in entries:
        words = (part.capitalize() for part in route.split("_"))
        assert f"{''.join(words)}Response" == name


def test_a_stale_file_is_told(tmp_path, monkeypatch, capsys):
    assert typescript.main(["--check"]) == 0, "run `npm run gen` in frontend/"
    monkeypatch.setattr(typescript, "TARGET", tmp_path / "types.gen.ts")
    assert typescript.main(["--check"]) == 1
    assert typescript.main([]) == 0
    assert typescript.main(["--check"]) == 0
    with (tmp_path / "types.gen.ts").open("a", encoding="utf-8") as file:
        file.write("// edited\n")
    capsys.readouterr()
    assert typescript.main(["--check"]) == 1
    assert "types.gen.ts differs" in capsys.readouterr().err
