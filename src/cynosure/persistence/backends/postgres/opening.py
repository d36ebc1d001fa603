"""The entry point, which must work where the driver is not installed: then it says how to install it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cynosure.common.errors import Misconfigured
from cynosure.persistence.backends.postgres.address import read_address
from cynosure.persistence.spi import Backend


def open_backend(url: str, options: Mapping[str, str]) -> Backend:
    """`postgresql://user:password@host:port/database?schema=NAME`; options are in `address.py`."""
    address = read_address(url, options)
    with needing_driver():
        from cynosure.persistence.backends.postgres.backend import (  # noqa: PLC0415 - see above
            PostgresBackend,
        )
    return PostgresBackend(address)


@contextmanager
def needing_driver() -> Iterator[None]:
    """Around an import that needs the driver."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise Misconfigured(
            "The driver for PostgreSQL is not installed",
            fix="Install it: pip install 'cynosure[postgres]'",
        ) from error
