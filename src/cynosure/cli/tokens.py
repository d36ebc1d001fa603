"""`cynosure tokens …`: the keys that sign tokens.

Through the server's operator socket, or on the store itself when no server runs.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli import options
from cynosure.cli.operator import run_operator_command
from cynosure.cli.output import print_json, print_table

if TYPE_CHECKING:
    from cynosure.server.token_commands import KeyInfo

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Keys that sign tokens: look at them, replace them, protect them by another master key.",
)

Realm = Annotated[str, typer.Option("--realm", metavar="REALM", help="The realm whose keys are meant.")]


@app.callback()
def tokens() -> None:
    """Keys that sign tokens."""


@app.command()
def keys(
    realm: Realm = "default",
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Show the keys of a realm: the one that signs, and those whose tokens are still good.

    Example: `cynosure tokens keys --realm acme --data ./data`
    """
    from cynosure.server.token_commands import KeyInfo, KeysParams

    source = options.make_source(config, {"server.data_dir": data, "persistence.url": store})
    _print(run_operator_command("tokens.keys", KeysParams(realm), list[KeyInfo], source), as_json=as_json)


@app.command()
def rotate(
    realm: Realm = "default",
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Refuse the tokens of all earlier keys, within a minute.")
    ] = False,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Let a new key sign from now on. Tokens of the one before it stay good until they expire.

    Nobody needs to do this regularly: keys are replaced by themselves (`auth.tokens.key_lifetime`). With
    `--revoke` every client of the realm has to get a new token: for a key that may have been stolen.

    Example: `cynosure tokens rotate --revoke --data ./data`
    """
    from cynosure.server.token_commands import KeyInfo, RotateParams

    source = options.make_source(config, {"server.data_dir": data, "persistence.url": store})
    params = RotateParams(realm, revoke)
    _print(run_operator_command("tokens.rotate", params, list[KeyInfo], source), as_json=as_json)


@app.command()
def rewrap(
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Protect the keys of all realms by the primary master key of the keyring.

    After the keyring got another primary key: then no signing key needs the old one any more.

    Example: `cynosure tokens rewrap --data ./data`
    """
    from cynosure.server.token_commands import RewrapParams, Rewrapped

    source = options.make_source(config, {"server.data_dir": data, "persistence.url": store})
    done = run_operator_command("tokens.rewrap", RewrapParams(), Rewrapped, source)
    if as_json:
        print_json(done)
    else:
        print(f"{done.keys} keys of {done.realms} realms were rewrapped.")


def _print(found: "list[KeyInfo]", *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [(each.kid, each.created_at, each.retired_at, each.good_until, each.master_key) for each in found]
    print_table(("KEY", "SIGNS SINCE", "UNTIL", "TOKENS UNTIL", "MASTER KEY"), rows)
