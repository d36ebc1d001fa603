import subprocess
import sys
import traceback

import pytest

from cynosure.common.errors import Misconfigured
from cynosure.persistence.backends.postgres.address import CONNECTIONS, SCHEMA, read_address

PASSWORD = "geheim-9f3"


def test_a_url_is_read_into_place_schema_and_options() -> None:
    address = read_address(
        f"postgresql://me:{PASSWORD}@db.example:5433/lake?schema=prod&sslmode=require&command_timeout_s=2.5",
        {"turn_timeout_s": "3"},
    )

    assert address.place == "db.example:5433/lake"
    assert address.schema == "prod"
    assert (address.command_timeout_s, address.turn_timeout_s) == (2.5, 3)
    assert address.url.reveal() == f"postgresql://me:{PASSWORD}@db.example:5433/lake?sslmode=require"
    assert PASSWORD not in repr(address)


def test_defaults_hold_where_the_url_says_nothing() -> None:
    address = read_address("postgresql://", {})

    assert address.place == "(default host)/(default database)"
    assert (address.schema, address.connections) == (SCHEMA, CONNECTIONS)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{PASSWORD}/x@db.example/lake",
        f"postgresql://me:a/{PASSWORD}@db.example:5432/lake",
        f"postgresql://me:x?{PASSWORD}@db.example/lake",
        f"postgresql://me:x?{PASSWORD}=1@db.example/lake",
        f"postgresql://me:x#{PASSWORD}@db.example/lake",
        f"postgresql://me:[{PASSWORD}@db.example/lake",
        f"postgresql://me:{PASSWORD}@db.example:port/lake",
        f"postgresql://me:{PASSWORD}@db.example/lake?schema=Prod",
        f"postgresql://me:{PASSWORD}@db.example/lake?schema=a%22b",
        f"postgresql://me:{PASSWORD}@db.example/lake?schema=",
        f"postgresql://me:{PASSWORD}@db.example/lake?colour=red",
        f"postgresql://me:{PASSWORD}@db.example/lake?work_mem=1GB",
        f"postgresql://me:{PASSWORD}@db.example/lake?connections=1",
        f"postgresql://me:{PASSWORD}@db.example/lake?connections=many",
        f"postgresql://me:{PASSWORD}@db.example/lake?command_timeout_s=0",
        f"postgresql://me:{PASSWORD}@db.example/lake?turn_timeout_s=4",
    ],
)
def test_a_url_that_cannot_be_used_is_misconfigured_without_showing_the_password(url: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        read_address(url, {"turn_timeout_s": "3"})

    assert refused.value.fix
    assert PASSWORD not in "".join(traceback.format_exception(refused.value)).replace(url, "")
    assert PASSWORD not in str(refused.value) + repr(refused.value.details)


def test_a_missing_driver_is_named_with_the_command_that_installs_it() -> None:
    # A process of its own: here the driver is loaded already.
    code = """
import sys
sys.modules["asyncpg"] = None
from cynosure.common.errors import Misconfigured
from cynosure.persistence.open_backend import open_backend
try:
    open_backend("postgresql://localhost/db")
except Misconfigured as error:
    print(error.fix)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "pip install 'cynosure[postgres]'" in done.stdout
