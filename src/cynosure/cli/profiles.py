"""`cynosure profiles …`: servers that you speak to by name.

A maintainer must not break: no command shows a stored secret.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cynosure.cli.flags import read_secret
from cynosure.cli.options import Json
from cynosure.cli.output import print_fields, print_json, print_table, tell
from cynosure.common.errors import AlreadyExists

if TYPE_CHECKING:
    from cynosure.client.profiles import Profile, Profiles

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Servers that you speak to by name.",
    epilog=(
        "`cynosure profiles create prod --url https://catalog.example.org --client-id ID "
        "--client-secret-file - --default`, then `cynosure catalogs list`. Profiles are in a file of mode "
        "0600 in your configuration directory; without a stored secret, each call takes it from "
        "`--client-secret-file` or `$CYNOSURE_CLIENT_SECRET`, or asks."
    ),
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.")]
Realm = Annotated[str | None, typer.Option("--realm", metavar="NAME", help="Realm to ask in.")]
ClientId = Annotated[str | None, typer.Option("--client-id", metavar="ID", help="Who asks.")]
SecretFile = Annotated[
    str | None,
    typer.Option(
        "--client-secret-file", metavar="FILE", help="Store this secret as well; - reads stdin, or asks."
    ),
]
TlsCa = Annotated[Path | None, typer.Option("--tls-ca", metavar="FILE", help="Authorities to trust.")]
TlsCert = Annotated[Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate to show.")]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its key.")]
PlainHttp = Annotated[
    bool | None,
    typer.Option("--plain-http/--no-plain-http", help="Send the secret to another machine without TLS."),
]
Gateway = Annotated[
    str | None,
    typer.Option("--gateway", metavar="URL", help="Where SQL goes. Default: port 8184 of the same host."),
]
Default = Annotated[bool, typer.Option("--default", help="Use it when no server is named.")]


@app.command()
def create(
    name: Name,
    url: Annotated[str, typer.Option("--url", metavar="URL", help="The server.")],
    realm: Realm = None,
    client_id: ClientId = None,
    client_secret_file: SecretFile = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    gateway: Gateway = None,
    plain_http: PlainHttp = None,
    is_default: Default = False,
    as_json: Json = False,
) -> None:
    """Make a profile."""
    path, known = _load()
    if name in known.profiles:
        raise AlreadyExists("There is a profile of this name", fix="Use profiles update.", profile=name)
    given = _given(url, realm, client_id, client_secret_file, tls_ca, tls_cert, tls_key, gateway, plain_http)
    _save(path, known, name, given, is_default=is_default, as_json=as_json)


@app.command()
def update(
    name: Name,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="The server.")] = None,
    realm: Realm = None,
    client_id: ClientId = None,
    client_secret_file: SecretFile = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    gateway: Gateway = None,
    plain_http: PlainHttp = None,
    is_default: Default = False,
    as_json: Json = False,
) -> None:
    """Change a profile; what is not named stays. A new client id forgets the secret of the old one."""
    path, known = _load()
    current = known.get(name)
    kept = {field: getattr(current, field) for field in current.__struct_fields__}
    if client_id is not None and client_id != current.client_id:
        kept["client_secret"] = ""
    given = _given(url, realm, client_id, client_secret_file, tls_ca, tls_cert, tls_key, gateway, plain_http)
    _save(path, known, name, {**kept, **given}, is_default=is_default, as_json=as_json)


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the profiles. The one that is used when no server is named has a star."""
    _, known = _load()
    if as_json:
        print_json(
            {
                "default": known.default,
                "profiles": {name: _show(each) for name, each in known.profiles.items()},
            }
        )
        return
    rows = [
        (
            f"{name} *" if name == known.default else name,
            each.url,
            each.realm or "-",
            each.client_id or "-",
            "stored" if each.client_secret else "-",
        )
        for name, each in sorted(known.profiles.items())
    ]
    print_table(("PROFILE", "URL", "REALM", "CLIENT ID", "SECRET"), rows)
    if not rows:
        tell("There is none yet: cynosure profiles create NAME --url URL")


@app.command()
def get(name: Name, as_json: Json = False) -> None:
    """Show one profile, without its secret."""
    _, known = _load()
    shown = _show(known.get(name))
    if as_json:
        print_json(shown)
    else:
        print_fields({"profile": name, **{key.replace("_", " "): value for key, value in shown.items()}})


@app.command()
def delete(name: Name, as_json: Json = False) -> None:
    """Delete a profile, and its secret with it."""
    from cynosure.client.profiles import Profiles, write_profiles

    path, known = _load()
    known.get(name)
    rest = {each: profile for each, profile in known.profiles.items() if each != name}
    write_profiles(path, Profiles(rest, "" if known.default == name else known.default))
    if as_json:
        print_json({"deleted": name})
    else:
        print(f"Profile {name} is gone.")


def _load() -> "tuple[Path, Profiles]":
    from cynosure.client.profiles import load_profiles, profiles_path

    path = profiles_path(os.environ)
    return path, load_profiles(path)


def _given(
    url: str | None,
    realm: str | None,
    client_id: str | None,
    secret_file: str | None,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    gateway: str | None,
    plain_http: bool | None,
) -> dict[str, Any]:
    files = {"tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key}
    values = {
        "url": url,
        "realm": realm,
        "client_id": client_id,
        "client_secret": read_secret(secret_file, None, flag="--client-secret", prompt="Client secret"),
        "gateway": gateway,
        "plain_http": plain_http,
        **{name: str(path.expanduser().absolute()) if path else None for name, path in files.items()},
    }
    return {name: value for name, value in values.items() if value is not None}


def _save(
    path: Path, known: "Profiles", name: str, fields: dict[str, Any], *, is_default: bool, as_json: bool
) -> None:
    from cynosure.cli.transport import check_url
    from cynosure.client.profiles import Profile, Profiles, write_profiles

    made = Profile(**fields)
    check_url(made.url, is_plain_allowed=made.plain_http)
    if made.gateway:
        check_url(made.gateway, is_plain_allowed=made.plain_http, field="--gateway")
    write_profiles(path, Profiles({**known.profiles, name: made}, name if is_default else known.default))
    if as_json:
        print_json(_show(made))
    else:
        print(f"Profile {name} is ready: cynosure whoami --profile {name}")


def _show(profile: "Profile") -> dict[str, Any]:
    shown = {field: getattr(profile, field) for field in profile.__struct_fields__}
    shown["client_secret"] = "***" if profile.client_secret else ""
    return {name: value for name, value in shown.items() if value}
