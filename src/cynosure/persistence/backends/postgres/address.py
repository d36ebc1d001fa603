"""Where the database is and how patiently it is used: the URL and its options, read once.

A maintainer must not break: the URL itself stays in a `Secret`. Only `place`, which has no user and no
password, may be shown.

Behind PgBouncer in transaction mode: `statement_cache_size=0`, and let PgBouncer accept our session settings
(`ignore_startup_parameters = statement_timeout, lock_timeout, idle_in_transaction_session_timeout,
default_transaction_isolation, enable_seqscan, enable_hashjoin, enable_mergejoin, jit`), which then have to
be set for the database user.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from msgspec import Struct

from cynosure.common.errors import Misconfigured
from cynosure.common.secrets import Secret
from cynosure.persistence.backend_options import read_number, read_options

SCHEMA: Final = "cynosure"
CONNECT_TIMEOUT_S: Final = 5.0
COMMAND_TIMEOUT_S: Final = 15.0
TURN_TIMEOUT_S: Final = 5.0
CONNECTIONS: Final = 10
STATEMENT_CACHE_SIZE: Final = 100

_OWN: Final = frozenset(
    {
        "schema",
        "connect_timeout_s",
        "command_timeout_s",
        "turn_timeout_s",
        "connections",
        "statement_cache_size",
    }
)
# What the driver reads from a URL. Anything else it would send to the server as a setting.
_DRIVERS: Final = frozenset(
    {
        "host", "port", "dbname", "user", "password", "passfile", "service", "krbsrvname", "gsslib",
        "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword", "sslnegotiation",
        "ssl_min_protocol_version", "ssl_max_protocol_version",
    }
)  # fmt: skip
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Address(Struct, frozen=True, kw_only=True):
    """One store in a PostgreSQL database."""

    url: Secret
    """For the driver, without our own options."""
    place: str
    """Host, port and database, for people."""
    schema: str = SCHEMA
    """The tables live in a schema of their own; several stores can share a database."""
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    """How long a call waits for a connection, new or from the pool, before it is `Unavailable`."""
    command_timeout_s: float = COMMAND_TIMEOUT_S
    """How long a statement may take. After that its outcome is unknown if it writes."""
    turn_timeout_s: float = TURN_TIMEOUT_S
    """How long to wait for a turn or for a locked row, and how long a holder may do nothing."""
    connections: int = CONNECTIONS
    """Most connections of this process. Up to half of them may wait for or hold a turn."""
    statement_cache_size: int = STATEMENT_CACHE_SIZE
    """Prepared statements per connection. 0 behind a pooler that changes the server under a connection."""


def read_address(url: str, options: Mapping[str, str]) -> Address:
    """Read a URL; whatever is wrong with it is `Misconfigured`, without repeating any of it."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        # Not chained: the driver of this error quotes what it took for a port, often a password.
        raise _unreadable() from None
    if parts.fragment:
        raise _unreadable()
    read = read_options(parts.query, options, known=_OWN | _DRIVERS)
    schema = read.get("schema", SCHEMA)
    if not _SCHEMA_NAME.fullmatch(schema):
        raise Misconfigured(
            "The schema of the database URL is not a plain name",
            fix="Use lower-case letters, digits and _ in schema=, at most 63, not beginning with a digit.",
        )
    for_driver = {name: value for name, value in read.items() if name in _DRIVERS}
    host = for_driver.get("host") or host or "(default host)"
    database = for_driver.get("dbname") or parts.path.lstrip("/") or "(default database)"
    return Address(
        url=Secret(urlunsplit(parts._replace(query=urlencode(for_driver)))),
        place=f"{host}{f':{port}' if port else ''}/{database}",
        schema=schema,
        connect_timeout_s=read_number(read, "connect_timeout_s", CONNECT_TIMEOUT_S, lowest=0.1, highest=600),
        command_timeout_s=read_number(read, "command_timeout_s", COMMAND_TIMEOUT_S, lowest=0.1, highest=3600),
        turn_timeout_s=read_number(read, "turn_timeout_s", TURN_TIMEOUT_S, lowest=0.1, highest=600),
        connections=int(read_number(read, "connections", CONNECTIONS, lowest=2, highest=1000)),
        statement_cache_size=int(
            read_number(read, "statement_cache_size", STATEMENT_CACHE_SIZE, lowest=0, highest=10_000)
        ),
    )


def _unreadable() -> Misconfigured:
    return Misconfigured(
        "The database URL cannot be read",
        fix="Write postgresql://user:password@host:port/database; percent-encode / ? # @ : in the password.",
    )
