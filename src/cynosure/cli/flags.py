"""Which server a command speaks to, as its flags, the environment and profiles say.

Must not break: a secret is never a plain flag, because other users of the machine can see those; and a client
id is never sent with the secret of another one.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cynosure.cli import options
from cynosure.common.errors import BadInput

if TYPE_CHECKING:
    from cynosure.client.profiles import Profile, Profiles

_PANEL = "Connection"
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="A server, with a principal's credentials. Default: $CYNOSURE_URL, else a profile, else the "
        "server of the data directory, without credentials.",
        rich_help_panel=_PANEL,
    ),
]
ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="See cynosure profiles. Default: $CYNOSURE_PROFILE.",
        rich_help_panel=_PANEL,
    ),
]
Realm = Annotated[
    str | None,
    typer.Option(
        "--realm", metavar="NAME", help="Default: $CYNOSURE_REALM, else default.", rich_help_panel=_PANEL
    ),
]
ClientId = Annotated[
    str | None,
    typer.Option("--client-id", metavar="ID", help="Default: $CYNOSURE_CLIENT_ID.", rich_help_panel=_PANEL),
]
SecretFile = Annotated[
    str | None,
    typer.Option(
        "--client-secret-file",
        metavar="FILE",
        help="Its secret; - reads stdin. Default: $CYNOSURE_CLIENT_SECRET.",
        rich_help_panel=_PANEL,
    ),
]
SecretVariable = Annotated[
    str | None,
    typer.Option(
        "--client-secret-env",
        metavar="VARIABLE",
        help="Variable that holds its secret.",
        rich_help_panel=_PANEL,
    ),
]
TlsCa = Annotated[
    Path | None,
    typer.Option("--tls-ca", metavar="FILE", help="Authorities to trust.", rich_help_panel=_PANEL),
]
PlainHttp = Annotated[
    bool,
    typer.Option(
        "--plain-http", help="Send the secret to another machine without TLS.", rich_help_panel=_PANEL
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Settings file of the local server.", rich_help_panel=_PANEL
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Data directory of the local server. Default: ./data",
        rich_help_panel=_PANEL,
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="Store to work on when no server runs.", rich_help_panel=_PANEL
    ),
]

_REPEATING = "Repeating"
IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="KEY",
        help="Your own, to run the very same command again and get the first answer. Default: a new one, "
        "where the server honours them.",
        rich_help_panel=_REPEATING,
    ),
]
Timeout = Annotated[
    str,
    typer.Option(
        "--timeout",
        metavar="DURATION",
        help="How long the change is repeated while the server fails or does not answer.",
        rich_help_panel=_REPEATING,
    ),
]
DEFAULT_TIMEOUT = "2m"


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of a connection, and how the result is shown: parameters of every command."""

    url: Url = None
    profile: ProfileName = None
    realm: Realm = None
    client_id: ClientId = None
    client_secret_file: SecretFile = None
    client_secret_env: SecretVariable = None
    tls_ca: TlsCa = None
    plain_http: PlainHttp = False
    config: Config = None
    data: Data = None
    store: Store = None
    as_json: options.Json = False


class Local(NamedTuple):
    """The server of a data directory, or its store when none runs."""


def choose_server(to: Flags, environment: Mapping[str, str], profiles: "Profiles") -> "Profile | Local":
    """What flags, environment and profiles come to, in this order."""
    from cynosure.client.profiles import Profile

    is_local = to.data is not None or to.store is not None or to.config is not None
    if is_local and (to.url or to.profile):
        raise BadInput(
            "Two servers are named",
            field="--url",
            fix="Give --url or --profile for a server on the network, or --data for the one of this machine.",
        )
    profile_name, url = to.profile, to.url
    if not is_local and not profile_name and not url:
        profile_name = environment.get("CYNOSURE_PROFILE")
        url = environment.get("CYNOSURE_URL")
    if profile_name:
        found = profiles.get(profile_name)
        return Profile(**{**_as_dict(found), "url": to.url or found.url})
    if url:
        return Profile(url)
    if not is_local and profiles.default:
        return profiles.get(profiles.default)
    return Local()


def read_secret(
    file: str | None, variable: str | None, *, flag: str, prompt: str, is_one_line: bool = True
) -> str | None:
    """A secret from a file, standard input or a variable; `None` when neither is named."""
    import sys

    from cynosure.common.secrets import Secret

    if file is not None and variable is not None:
        raise BadInput("Two places for one secret", field=f"{flag}-file", fix="Name a file or a variable.")
    if variable is not None:
        if not (text := os.environ.get(variable, "")):
            raise BadInput(
                "The variable with the secret is not set",
                field=f"{flag}-env",
                fix="Set it, and give its name, not the secret.",
            )
        return text
    if file == "-" and not is_one_line:
        return sys.stdin.read()
    if file == "-" and sys.stdin.isatty():
        return str(typer.prompt(prompt, hide_input=True, err=True))
    if file == "-":
        return sys.stdin.readline().rstrip("\r\n")
    return None if file is None else Secret.from_file(Path(file)).reveal()


def _as_dict(profile: "Profile") -> dict[str, Any]:
    return {name: getattr(profile, name) for name in profile.__struct_fields__}
