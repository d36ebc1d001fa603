"""Credentials come from the catalog's definition, whatever else lies around (I116)."""

import uuid
from pathlib import Path

import pytest

from cynosure.catalog.names import Identifier
from cynosure.federation.remote import RemoteTable
from cynosure.testing.remote_samples import Stage, plan_table, setting
from cynosure.testing.s3_servers import S3Server
from tests.federation.remotes.pointers.corners import Corner, GlueCorner
from tests.federation.remotes.pointers.lakes import open_remote_at

pytestmark = [pytest.mark.anyio, pytest.mark.hive, pytest.mark.glue, pytest.mark.postgres, pytest.mark.s3]


async def test_nothing_else_is_consulted_to_load_and_commit(
    corner: Corner, minio: S3Server, tmp_path: Path, poisoned: list[bytes]
):
    place = minio.fresh_location("pointers")
    table = Identifier((f"poisoned_{uuid.uuid4().hex[:12]}",), "orders")
    async with open_remote_at(tmp_path / "files", corner, minio, place) as remote:
        await remote.create_namespace(table.namespace, {})
        await remote.create_table(plan_table(Stage(remote, place), table))
        loaded = await remote.load_table(table)
        assert isinstance(loaded, RemoteTable)
        changed = await remote.commit_table(setting(table, loaded, color="red"))

    assert changed.metadata.properties["color"] == "red"
    assert poisoned == []


async def test_glue_is_asked_without_the_proxies_of_the_environment(
    glue: GlueCorner, trap: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
):
    url, heard = trap
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    opened = glue.open()

    await opened.check()
    await opened.close()

    assert heard == []
