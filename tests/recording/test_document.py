# SPDX-License-Identifier: MIT
"""The columns that docs/format/recording.md lists are those of the schema: a number that changes makes old files
unreadable, and every reader that was written by the document."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def schema_tables():
    """Return the names of the columns by number, for each array of the schema."""
    source = (ROOT / "src" / "recording" / "format" / "schema.c").read_text()
    arrays = re.findall(r"rec_column (\w+)_columns\[\] = \{(.*?)\n\};", source, re.S)
    column = re.compile(r"(?:COLUMN|STRING|INDEX|LIKE|BYTES)\(\s*\w+,\s*(\d+),\s*(?:\w+\.)*(\w+)")
    return {name: [(int(number), field) for number, field in column.findall(body)] for name, body in arrays}


def document_tables():
    text = (ROOT / "docs" / "format" / "recording.md").read_text()
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.M)
    return [[(int(number), field) for number, field in re.findall(r"^\| (\d+) \| (\w+) \|", block, re.M)]
            for block in blocks]


def test_the_document_has_the_columns_of_the_schema():
    documented = document_tables()
    tables = schema_tables()
    assert len(tables) == 25
    for name, columns in tables.items():
        assert len(dict(columns)) == len(columns), name
        assert sorted(columns) in documented, name
