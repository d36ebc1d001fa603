from pathlib import Path

import pytest

from cynosure.catalog.bulk_import import ListedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.table_list import read_tables
from cynosure.common.errors import BadInput, NotFound

ORDERS = ListedTable(Identifier(("sales", "eu"), "orders"), "s3://b/orders/metadata/1.json", "s3://b/orders")


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "tables"
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_of_json(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '{"namespace":["sales","eu"],"name":"orders","metadata-location":"s3://b/orders/metadata/1.json",'
        '"location":"s3://b/orders"}\n\n'
        '{"namespace":["a.b"],"name":"t ü","metadata-location":"s3://b/t/metadata/1.json"}\n',
    )

    assert list(read_tables(path)) == [
        ORDERS,
        ListedTable(Identifier(("a.b",), "t ü"), "s3://b/t/metadata/1.json"),
    ]


def test_csv_with_its_columns_in_any_order(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "name,namespace,location,metadata-location\n"
        "orders,sales.eu,s3://b/orders,s3://b/orders/metadata/1.json\n"
        '"a ""b""",x,,s3://b/x/metadata/1.json\n',
    )

    assert list(read_tables(path)) == [
        ORDERS,
        ListedTable(Identifier(("x",), 'a "b"'), "s3://b/x/metadata/1.json"),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"namespace":["a"],"name":"t","metadata-location":"s"}\n{"namespace":["a"],"name":7}\n', 2),
        ('{"namespace":"a","name":"t","metadata-location":"s"}\n', 1),
        ("namespace,name\na,t\n", 1),
        ("namespace,name,metadata-location\na,t\n", 2),
        ("namespace,name,metadata-location\na,t,s,more\n", 2),
    ],
)
def test_a_wrong_line_is_told_by_its_number(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(BadInput) as caught:
        list(read_tables(written(tmp_path, text)))

    assert caught.value.details["line"] == line


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tables"
    path.write_bytes(b"namespace,name,metadata-location\n\xff\xfe,t,s\n")

    with pytest.raises(BadInput, match="cannot be read"):
        list(read_tables(path))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        list(read_tables(tmp_path / "absent"))
