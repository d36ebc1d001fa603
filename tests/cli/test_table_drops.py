"""Tables that are dropped, listed and restored, and things that are dropped with all they hold."""

import json
from pathlib import Path

import msgspec
import pytest

from cynosure.testing.metadata_files import write_metadata
from tests.cli.running import Cynosure, Ended
from tests.cli.scripted_server import Script, refusal, serve

OF = ("--catalog", "lake", "--namespace", "sales")
SCHEMA = {"type": "struct", "schema-id": 0, "fields": []}
UUID = "1f6a3ae4-5f2b-4d0c-9e5f-0d7a0d9b7c1"


def done(ended: Ended) -> Ended:
    assert ended.code == 0, ended.err
    return ended


@pytest.fixture
def lake(cynosure: Cynosure, tmp_path: Path) -> Cynosure:
    """With namespaces `sales` and `sales.eu`, and tables `orders` and `lines` in the first."""
    done(cynosure("catalogs", "create", "lake"))
    tables = tmp_path / "tables.jsonl"
    lines = [
        {"namespace": ["sales"], "name": name, "metadata-location": make_table(tmp_path, name, UUID + digit)}
        for digit, name in enumerate_digits("orders", "lines")
    ]
    tables.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    done(cynosure("tables", "import", "lake", str(tables)))
    done(cynosure("namespaces", "create", "sales.eu", "--catalog", "lake"))
    return cynosure


def enumerate_digits(*names: str) -> list[tuple[str, str]]:
    return [(str(number), name) for number, name in enumerate(names)]


def make_table(tmp_path: Path, name: str, uuid: str) -> str:
    return write_metadata(tmp_path / "data" / "warehouse" / "lake" / name, uuid, SCHEMA)


def files_of(tmp_path: Path, name: str) -> list[Path]:
    return [each for each in (tmp_path / "data" / "warehouse" / "lake" / name).rglob("*") if each.is_file()]


def dropped(lake: Cynosure) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(done(lake("tables", "dropped", "lake", "--json")).out)
    return found


def test_a_dropped_table_is_listed_and_restored_by_its_name(lake: Cynosure, tmp_path: Path) -> None:
    done(lake("tables", "delete", "orders", *OF))

    [listed] = dropped(lake)
    restored = done(lake("tables", "restore", "lake", "sales.orders"))

    assert (listed["kind"], listed["path"]) == ("table", ["sales", "orders"])
    assert "sales.orders is back" in restored.out
    assert dropped(lake) == []
    assert files_of(tmp_path, "orders")


def test_of_several_drops_of_one_name_the_id_says_which(lake: Cynosure) -> None:
    for _ in range(2):
        done(lake("namespaces", "delete", "sales.eu", "--catalog", "lake"))
        done(lake("namespaces", "create", "sales.eu", "--catalog", "lake"))
    done(lake("namespaces", "delete", "sales.eu", "--catalog", "lake"))
    ids = [str(each["id"]) for each in dropped(lake)]

    ambiguous = lake("tables", "restore", "lake", "sales.eu")
    unknown = lake("tables", "restore", "lake", "sales.nothing")
    restored = done(lake("tables", "restore", "lake", ids[1], "--json"))

    assert (ambiguous.code, unknown.code) == (1, 1)
    assert all(each in ambiguous.err for each in ids)
    assert "Give the id" in ambiguous.err
    assert json.loads(restored.out) == {"kind": "namespace", "path": ["sales", "eu"]}


def test_a_table_is_restored_under_another_name(lake: Cynosure) -> None:
    done(lake("tables", "delete", "orders", *OF))

    done(lake("tables", "restore", "lake", "sales.orders", "--to-namespace", "sales", "--as", "old"))

    assert "old" in done(lake("tables", "list", *OF)).out


@pytest.mark.parametrize("flags", [("--purge",), ("--purge", "--no-wait")])
def test_a_purged_table_is_gone_with_its_files(
    lake: Cynosure, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    ended = done(lake("tables", "delete", "orders", *OF, *flags, "--json"))
    tasks = json.loads(done(lake("tasks", "list", "--json")).out)

    assert json.loads(ended.out) == {"deleted": ["sales", "orders"], "purged": True}
    assert files_of(tmp_path, "orders") == []
    assert files_of(tmp_path, "lines")
    assert dropped(lake) == []
    assert [(each["table"], each["status"]) for each in tasks] == [("lake.sales.orders", "SUCCESS")]


def test_flags_that_mean_nothing_are_refused(lake: Cynosure) -> None:
    for words in (
        ("tables", "delete", "orders", *OF, "--no-wait"),
        ("namespaces", "delete", "sales", "--catalog", "lake", "--purge"),
        ("catalogs", "delete", "lake", "--purge"),
    ):
        ended = lake(*words)
        assert (ended.code, "Fix:" in ended.err) == (1, True)
    assert len(done(lake("tables", "list", *OF)).out.splitlines()) == 3


def test_a_cascade_says_what_would_go_and_does_nothing_without_a_yes(lake: Cynosure) -> None:
    ended = lake("namespaces", "delete", "sales", "--catalog", "lake", "--cascade")

    assert ended.code == 2
    assert "1 namespace, 2 tables" in ended.err
    assert "--yes" in ended.err
    assert "orders" in done(lake("tables", "list", *OF)).out


def test_a_namespace_goes_with_all_it_holds(lake: Cynosure, tmp_path: Path) -> None:
    ended = done(lake("namespaces", "delete", "sales", "--catalog", "lake", "--cascade", "--yes", "--json"))

    assert json.loads(ended.out)["with"]["tables"] == 2
    assert done(lake("namespaces", "list", "--catalog", "lake", "--json")).out.strip() == "[]"
    assert files_of(tmp_path, "orders")
    assert len(dropped(lake)) == 4


def test_a_catalog_goes_with_all_files_of_its_tables(lake: Cynosure, tmp_path: Path) -> None:
    ended = done(lake("catalogs", "delete", "lake", "--cascade", "--purge", "--yes"))

    assert "Catalog lake is gone, with 2 namespaces, 2 tables." in ended.out
    assert files_of(tmp_path, "orders") == files_of(tmp_path, "lines") == []
    assert done(lake("catalogs", "list", "--json")).out.strip() == "[]"


def test_a_cascade_is_run_again_under_its_key(lake: Cynosure) -> None:
    again = (
        *("namespaces", "delete", "sales", "--catalog", "lake"),
        *("--cascade", "--yes", "--idempotency-key", "k"),
    )

    first, second = lake(*again), lake(*again)

    assert (first.code, second.code) == (0, 0), second.err
    assert lake(*again[:-2]).code == 1


@pytest.mark.parametrize(("flags", "code"), [((), 1), (("--no-wait",), 0)])
def test_a_purge_that_takes_longer_names_its_task(
    cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], code: int
) -> None:
    script = Script()
    gone = {"id": "1", "kind": "table", "entity-id": "2", "dropped-ms": 5, "principal": "ann"}
    where = {"namespace": ["sales"], "name": "orders", "purge": "purging", "task-id": "the-task"}
    script.answers = [refusal(504, "still purging"), (200, {"dropped": [{**gone, **where}]})]
    monkeypatch.setenv("SECRET_OF_ANN", "not-a-real-secret")
    who = ("--client-id", "ann", "--client-secret-env", "SECRET_OF_ANN")

    with serve(script) as url:
        ended = cynosure("tables", "delete", "orders", *OF, "--purge", *flags, "--url", url, *who)
        listed = cynosure("tables", "dropped", "lake", "--url", url, *who)

    assert ended.code == code
    assert "cynosure tasks watch the-task" in ended.err
    assert listed.out.splitlines()[1].split()[-3:] == ["purging", "the-task", "-"]
    assert script.asked[0] == ("DELETE /catalog/v1/lake/namespaces/sales/tables/orders?purgeRequested=true")
