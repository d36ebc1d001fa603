from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from cynosure.auth.errors import NoSuchRealm
from cynosure.common.key_file import add_primary_key
from cynosure.persistence.lifecycle import open_persistence
from cynosure.server.settings import ServerSettings, Settings
from cynosure.server.token_commands import KeysParams, RewrapParams, RotateParams, token_commands

pytestmark = pytest.mark.anyio


@pytest.fixture
async def run(anyio_backend: str, tmp_path: Path):
    """Runs a command by name, on one store."""
    settings = Settings(server=ServerSettings(data_dir=tmp_path))
    async with open_persistence("memory:", initialise=True) as persistence:

        @asynccontextmanager
        async def open_store(initialise: bool):
            yield persistence

        commands = {command.name: command for command in token_commands(open_store, settings)}

        async def run_command(name, params):
            # As it goes over the operator socket.
            encoded = msgspec.json.encode(await commands[name].run(params, lambda progress: None))
            return msgspec.json.decode(encoded)

        yield run_command


async def test_looking_at_keys_makes_none_and_no_key_file(run, tmp_path):
    assert await run("tokens.keys", KeysParams()) == []
    assert list(tmp_path.iterdir()) == []


async def test_a_rotation_puts_a_new_key_in_front(run):
    (first,) = await run("tokens.rotate", RotateParams())

    new, old = await run("tokens.rotate", RotateParams())

    assert old["kid"] == first["kid"] != new["kid"]
    assert (new["retired_at"], new["good_until"]) == (None, None)
    assert old["retired_at"] < old["good_until"]
    assert await run("tokens.keys", KeysParams()) == [new, old]


async def test_a_rotation_can_revoke_what_was_before(run):
    await run("tokens.rotate", RotateParams())

    assert len(await run("tokens.rotate", RotateParams(revoke=True))) == 1


async def test_rewrapping_takes_all_keys_to_the_new_master_key(run, tmp_path):
    await run("tokens.rotate", RotateParams())
    await run("tokens.rotate", RotateParams())
    add_primary_key(tmp_path / "keyring.json")

    assert await run("tokens.rewrap", RewrapParams()) == {"keys": 2, "realms": 1}

    assert {key["master_key"] for key in await run("tokens.keys", KeysParams())} == {"k2"}
    assert await run("tokens.rewrap", RewrapParams()) == {"keys": 0, "realms": 1}


async def test_there_are_no_keys_of_a_realm_that_does_not_exist(run):
    for name, params in (("tokens.keys", KeysParams("x")), ("tokens.rotate", RotateParams("x"))):
        with pytest.raises(NoSuchRealm):
            await run(name, params)


async def test_nothing_that_is_shown_holds_a_private_key(run):
    shown = msgspec.json.encode(await run("tokens.rotate", RotateParams()))

    assert len(shown) < 500
    assert b"sealed" not in shown
