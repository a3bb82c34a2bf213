"""JSON and YAML files: invalid ones are errors that name the file and the position, and never expand without bound."""

from pathlib import Path

import pytest

from maskwise.errors import FormatError
from maskwise.formats import Diagnostics
from maskwise.formats.field_mapping import FieldMapping
from maskwise.formats.json_files import decode_record, read_json
from maskwise.yaml_files import MAX_BYTES, read_yaml
from tests.formats import layouts
from tests.formats.reading import read, reasons

MAPPING = "image: image\nquestion: question\ntarget: {mask: mask}\n"


def yaml_error(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "mapping.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(FormatError) as caught:
        read_yaml(path, FieldMapping)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_an_alias_bomb_is_refused_before_it_expands(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 40)]
    assert "aliases (*name) and merge keys (<<) are not allowed" in yaml_error(
        tmp_path, "\n".join(lines)
    )


def test_a_merge_key_bomb_is_refused_before_it_expands(tmp_path: Path) -> None:
    lines = ["m0: &m0 {a: 1}"]
    lines += [
        f"m{k}: &m{k} {{<<: [{', '.join([f'*m{k - 1}'] * 9)}]}}" for k in range(1, 40)
    ]
    message = yaml_error(tmp_path, "\n".join(lines))
    assert "line 2" in message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (MAPPING + "tags: {when: 2020-13-45}\n", "line 4, column 14"),
        (MAPPING + "tags: {when: 2020-01-01 25:61:00}\n", "line 4, column 14"),
        (MAPPING + "tags: [unclosed\n", "line 5"),
        (MAPPING + "tags: {1: 2}\n", "$.tags"),
        (b"image: \xff\xfe\n", "position"),
        ("? [a, b]\n: c\n", "line 1"),
        ("[" * 5000, "nested too deeply"),
        (MAPPING + "tags: {a: " + "[" * 60, "line 4"),
        ('"\\ud800": 1\n', "surrogates"),
    ],
    ids=[
        "date",
        "time",
        "syntax",
        "type",
        "utf-8",
        "key",
        "depth",
        "position of the depth",
        "surrogate",
    ],
)
def test_invalid_yaml_names_its_position(
    tmp_path: Path, text: str | bytes, place: str
) -> None:
    assert place in yaml_error(tmp_path, text)


def test_a_large_yaml_file_is_refused(tmp_path: Path) -> None:
    assert f"at most {MAX_BYTES}" in yaml_error(tmp_path, MAPPING + "#" * MAX_BYTES)


def test_invalid_utf_8_in_json_is_an_error_with_its_position(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"a": "\xff\xfe"}')
    with pytest.raises(FormatError, match=r"x\.json does not follow its format: .*"):
        read_json(path, dict[str, str])


def test_invalid_utf_8_in_a_record_is_a_diagnostic() -> None:
    diagnostics = Diagnostics()
    raw = b'{"a": "\xff"}'
    assert (
        decode_record(
            raw, dict[str, str], diagnostics=diagnostics, file="x", record="line 1"
        )
        is None
    )
    assert diagnostics.skipped == {"fields of another type": 1}


@pytest.mark.parametrize("layout", ["coco", "mmr", "cocoa", "grefcoco"])
def test_invalid_utf_8_in_annotations_never_raises_another_error(
    layout: str, tmp_path: Path
) -> None:
    getattr(layouts, layout)(tmp_path)
    for path in tmp_path.rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(b'"', b'"\xff', 9))
    with pytest.raises(FormatError):
        read(layout, tmp_path, split="val" if layout == "grefcoco" else None)


def test_invalid_utf_8_in_csv_names_the_offset(tmp_path: Path) -> None:
    (tmp_path / "val.csv").write_bytes(b"image,question,mask\na.png,\xff,x\n")
    with pytest.raises(
        FormatError, match=r"val\.csv is not UTF-8: invalid byte at offset 26"
    ):
        read("records", tmp_path)


def test_a_csv_row_of_another_length_is_skipped(tmp_path: Path) -> None:
    text = 'image,question,mask\na.png,one,"[[0,0,3,0,3,3]]"\na.png,two\na.png,three,"",x\n'
    (tmp_path / "val.csv").write_text(text)
    layouts.write_image(tmp_path / "a.png")
    found, diagnostics = read("records", tmp_path)
    assert [sample.question for image in found for sample in image.samples] == ["one"]
    assert reasons(diagnostics) == ["row of another length"] * 2
