"""The generated half of the HTTP contract."""

from __future__ import annotations

import re

import pytest

from tb_plugin import api
from tb_plugin.contract import typescript
from tb_plugin.contract.declarations import (
    API_FILES,
    Contract,
    ContractError,
    parse,
    read_contract,
)
from tb_plugin.contract.typescript import readers_file, types_file

HEAD = "from dataclasses import dataclass\nAPI_VERSION = 3\n"


def contract(fields: str, before: str = "") -> Contract:
    return parse(
        f"{HEAD}{before}\n@dataclass(frozen=True, slots=True)\n"
        f'class Thing:\n    """A thing."""\n\n{fields}\n'
    )


def member(annotation: str) -> str:
    text = types_file(contract(f"    one_field: {annotation}"))
    found = re.search(r"readonly oneField: (.*);", text)
    assert found is not None, text
    return found[1]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("str", "string"),
        ("int", "number"),
        ("float | None", "number | null"),
        ("bool", "boolean"),
        ("F64Column", "Float64Array"),
        ("I32Column", "Int32Array"),
        ("U16Column", "Uint16Array"),
        ("U8Column", "Uint8Array"),
        ("tuple[str, ...]", "readonly string[]"),
        ("tuple[int | None, ...]", "readonly (number | null)[]"),
        ("tuple[tuple[int, ...], ...] | None", "readonly readonly number[][] | null"),
        ('Literal["a", "b"]', '"a" | "b"'),
        ('tuple[Literal["a", "b"], ...]', 'readonly ("a" | "b")[]'),
    ],
)
def test_every_annotation_has_its_type(annotation, expected):
    assert member(annotation) == expected


@pytest.mark.parametrize(
    "annotation",
    ["dict[str, int]", "list[int]", "int | str", "tuple[int, str]", "object", "Other"],
)
def test_what_has_no_wire_form_is_refused_by_line(annotation):
    broken = contract(f"    one_field: {annotation}")
    with pytest.raises(ContractError, match=r"api\.py:\d+"):
        types_file(broken)


def test_a_method_is_no_part_of_the_contract():
    with pytest.raises(ContractError, match="Thing may hold annotated fields only"):
        contract("    def size(self): ...")


def test_a_response_must_stand_after_its_parts():
    source = (
        f"{HEAD}@dataclass\nclass WholeResponse:\n    part: Part\n"
        "@dataclass\nclass Part:\n    number: int\n"
    )
    with pytest.raises(ContractError, match="Part must be declared before"):
        readers_file(parse(source))


def test_doc_comments_are_carried_over_and_cannot_close_early():
    text = types_file(contract('    size_bytes: int\n    """Bytes */ of it."""'))
    assert "/** A thing. */\nexport interface Thing" in text
    assert "  /** Bytes * / of it. */\n  readonly sizeBytes: number;" in text


def test_every_dataclass_and_field_of_the_contract_is_generated():
    declared = read_contract()
    types, readers = types_file(declared), readers_file(declared)
    shapes = [
        cls
        for cls in (getattr(api, name) for name in api.__all__)
        if hasattr(cls, "__dataclass_fields__") and not cls.__name__.endswith("Column")
    ]
    assert len(shapes) > 10
    for cls in shapes:
        interface = re.search(
            rf"export interface {cls.__name__} {{\n(.*?)\n}}", types, re.DOTALL
        )
        assert interface is not None, cls
        members = re.findall(r"^  readonly (\w+):", interface[1], re.MULTILINE)
        fields = list(cls.__dataclass_fields__)
        assert members == [typescript.camel(name) for name in fields]
        reader = re.search(
            rf"= shape<types\.{cls.__name__}>\({{\n(.*?)\n?}}\);", readers, re.DOTALL
        )
        assert reader is not None, cls
        assert re.findall(r"^  (\w+): .+,$", reader[1], re.MULTILINE) == members
        assert [typescript.wire_name(member) for member in members] == fields


def test_a_name_that_the_page_could_not_spell_is_refused():
    with pytest.raises(ContractError, match="cannot tell part_2 from part2"):
        readers_file(contract("    part_2: int"))


def test_the_page_makes_the_name_of_each_response_of_its_route():
    declared = read_contract()
    block = readers_file(declared).partition("export const routes")[2]
    entries = re.findall(r"^  (\w+): read(\w+),$", block, re.MULTILINE)
    assert [name for _, name in entries] == [shape.name for shape in declared.routes]
    for route, name in entries:
        words = (part[0].upper() + part[1:] for part in route.split("_"))
        assert f"{''.join(words)}Response" == name


def test_the_generated_files_are_those_of_the_contract():
    stale = [
        path
        for path, text in typescript.generate().items()
        if path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `npm run gen` in frontend/"


def test_check_tells_a_stale_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(typescript, "TARGET_FOLDER", tmp_path)
    assert typescript.main(["--check"]) == 1
    assert typescript.main([]) == 0
    assert typescript.main(["--check"]) == 0
    with (tmp_path / "types.gen.ts").open("a", encoding="utf-8") as file:
        file.write("// edited\n")
    capsys.readouterr()
    assert typescript.main(["--check"]) == 1
    assert "types.gen.ts differs" in capsys.readouterr().err


def test_every_name_of_the_contract_is_loaded_from_the_part_that_declares_it():
    for name in api.__all__:
        getattr(api, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = api.Nothing
    parts = {path.stem for path in API_FILES} - {"__init__"}
    assert parts == set(api._PARTS)
