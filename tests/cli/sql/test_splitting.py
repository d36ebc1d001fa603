import pytest

from cynosure.cli.sql_repl.splitting import place_statements, split_statements


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], ""),
        (" ; ;", [], ""),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1; SELECT 2 ;", ["SELECT 1", "SELECT 2"], ""),
        ("SELECT ';'; x", ["SELECT ';'"], "x"),
        (r"SELECT 'it\'s;'; x", [r"SELECT 'it\'s;'"], "x"),
        (r"SELECT 'end\\'; x", [r"SELECT 'end\\'"], "x"),
        ("SELECT 'it''s;' ; x", ["SELECT 'it''s;'"], "x"),
        ('SELECT "a;b"; x', ['SELECT "a;b"'], "x"),
        (r"SELECT `a\`; x", [r"SELECT `a\`"], "x"),
        ("SELECT 1 -- one; two\n; x", ["SELECT 1 -- one; two"], "x"),
        ("-- only this; and that", [], ""),
        ("SELECT 1 /* a; /* b; */ c; */; x", ["SELECT 1 /* a; /* b; */ c; */"], "x"),
        ("/* first */ -- second\nSELECT 1; -- third", ["SELECT 1"], ""),
        ("SELECT '-- no comment'; x", ["SELECT '-- no comment'"], "x"),
        ("SELECT 'open; x", [], "SELECT 'open; x"),
        ("SELECT 1 /* open; x", [], "SELECT 1 /* open; x"),
        ("/* open; x", [], "/* open; x"),
    ],
)
def test_statements_end_at_semicolons_outside_of_quotes_and_comments(
    text: str, statements: list[str], rest: str
) -> None:
    assert split_statements(text) == (statements, rest)


def test_statements_know_where_they_begin() -> None:
    text = "-- one;\nSELECT 1; SELECT\n2;\n\n  /* ; */ SELECT 3"

    assert place_statements(text) == [("SELECT 1", 2, 1), ("SELECT\n2", 2, 11), ("SELECT 3", 5, 11)]


def test_a_long_file_is_split_in_no_time() -> None:
    text = "SELECT 'a;b', \"c\" FROM t -- it's\n;\n" * 50_000

    assert len(split_statements(text).statements) == len(place_statements(text)) == 50_000
