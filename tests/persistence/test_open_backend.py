from pathlib import Path

import pytest

from cynosure.common.errors import Misconfigured
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.backends.postgres.backend import PostgresBackend
from cynosure.persistence.backends.sqlite import SqliteBackend
from cynosure.persistence.open_backend import open_backend
from cynosure.testing.backend_kit.samples import fetch_row, fixed, obj_key


def make_package(directory: Path, name: str, entry: str) -> None:
    """What an installer leaves of a package that offers a backend."""
    metadata = directory / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[cynosure.backends]\n{entry}\n")


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("memory:", MemoryBackend),
        ("sqlite:store.db", SqliteBackend),
        ("postgresql://me:secret@localhost/db", PostgresBackend),
    ],
)
def test_the_scheme_of_the_url_chooses_the_backend_without_connecting(url: str, kind: type) -> None:
    backend = open_backend(url)

    assert type(backend) is kind
    assert "secret" not in repr(backend)


@pytest.mark.parametrize("url", ["", "catalog.db", "/var/lib/catalog.db", "SQLITE:x", ":memory:", "1x:y"])
def test_a_url_without_a_scheme_is_misconfigured_and_names_the_schemes(url: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        open_backend(url)

    assert "memory:, postgresql:, sqlite:" in refused.value.fix


def test_an_unknown_scheme_is_misconfigured_and_the_rest_of_the_url_is_not_shown() -> None:
    with pytest.raises(Misconfigured) as refused:
        open_backend("oracle://me:geheim@host/db")

    assert refused.value.details == {"scheme": "oracle"}
    assert "postgresql:" in refused.value.fix
    assert "geheim" not in str(refused.value)


def test_two_packages_with_one_scheme_are_misconfigured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_package(tmp_path, "ours", "shelf = cynosure.persistence.backends.memory:open_backend")
    make_package(tmp_path, "theirs", "shelf = cynosure.persistence.backends.sqlite:open_backend")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(Misconfigured) as refused:
        open_backend("shelf:x")

    assert refused.value.details["packages"] == ["ours", "theirs"]


@pytest.mark.parametrize("value", ["no_such_module:open_backend", "cynosure.persistence.spi:no_such_name"])
def test_a_package_that_cannot_be_loaded_is_misconfigured_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    make_package(tmp_path, "broken", f"shelf = {value}")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(Misconfigured) as refused:
        open_backend("shelf:x")

    assert refused.value.details["package"] == "broken"


def test_an_option_may_come_from_the_url_or_the_settings_but_not_both_ways() -> None:
    from_url = open_backend("memory:?row_bytes=5000")
    from_settings = open_backend("memory:", {"row_bytes": "6000"})
    with pytest.raises(Misconfigured):
        open_backend("memory:?row_bytes=5000", {"row_bytes": "6000"})
    with pytest.raises(Misconfigured):
        open_backend("memory:", {"colour": "red"})

    assert from_url.limits.row_bytes == 5000
    assert from_settings.limits.row_bytes == 6000


@pytest.mark.anyio
async def test_memory_stores_are_shared_by_name_and_otherwise_apart(tmp_path: Path) -> None:
    nameless, also_nameless = open_backend("memory:"), open_backend("memory:")
    named, same = open_backend(f"memory:{tmp_path}"), open_backend(f"memory:{tmp_path}")
    for backend in (nameless, also_nameless, named):
        await backend.setup()
        await backend.write([fixed(1)] if backend in (nameless, named) else [])

    assert await fetch_row(also_nameless, obj_key(1)) is None
    assert await fetch_row(same, obj_key(1)) == fixed(1)
