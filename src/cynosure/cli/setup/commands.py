"""`cynosure setup …`: principals, roles, catalogs, policies and grants from a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.credentials import CredentialsFile
from cynosure.cli.output import print_fields, print_json, tell
from cynosure.cli.remote import Remote, connected

if TYPE_CHECKING:
    from cynosure.cli.setup.apply import Outcome
    from cynosure.cli.setup.document import Document
    from cynosure.cli.transport import Server
    from cynosure.client.management_types import Credentials

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Principals, roles, catalogs, policies and grants from a file.",
    epilog=(
        "Applying a file twice changes nothing the second time, and nothing is ever taken away. Files for "
        "the command line of Apache Polaris are understood. `cynosure setup export` writes one to begin with."
    ),
)

_SIGNS = {"create": "+", "update": "~", "assign": "+", "attach": "+", "grant": "+", "refuse": "!"}


@app.command("apply")
@connected
def apply_file(
    to: Remote,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    credentials_file: Annotated[
        Path | None,
        typer.Option(
            "--credentials-file",
            metavar="FILE",
            help="Write the credentials of new principals there, readable by you alone, not to the screen.",
        ),
    ] = None,
) -> None:
    """Make a server have what the file says. Exit code 1 when anything could not be done.

    Example: `cynosure setup apply team.yaml --dry-run`, then without.
    """
    from cynosure.cli.setup.document import load_document

    document = load_document(file)
    into = None if dry_run else CredentialsFile.open(credentials_file)
    made: dict[str, Credentials] = {}

    def keep(principal: str, credentials: "Credentials") -> None:
        if into is not None:
            into.add(principal, credentials)
            return
        made[principal] = credentials
        if not to.as_json:
            print_fields(
                {
                    "principal": principal,
                    "client id": credentials.client_id,
                    "client secret": credentials.client_secret,
                }
            )

    outcomes: list[Outcome] = []

    def tell_outcome(outcome: "Outcome") -> None:
        outcomes.append(outcome)
        if not to.as_json:
            _print(outcome)

    async def work(server: "Server") -> None:
        from cynosure.cli.setup.apply import apply_plan, preview
        from cynosure.cli.setup.plan import make_plan
        from cynosure.cli.setup.present import load_present

        plan = make_plan(document, await load_present(server, document), _bases(server, document))
        if dry_run:
            for outcome in preview(plan):
                tell_outcome(outcome)
        else:
            await apply_plan(server, plan, on_outcome=tell_outcome, on_credentials=keep)

    try:
        to.run(work, initialise=not dry_run)
    finally:
        if into is not None:
            into.remove_if_empty()
        failed = sum(each.result in ("failed", "not tried") for each in outcomes)
        if to.as_json:
            print_json({"failed": failed, "changes": outcomes, "credentials": made})
    if not to.as_json:
        _print_end(outcomes, failed, is_dry_run=dry_run)
        if made:
            tell("Keep the secrets now: nobody can read them again.")
        elif into is not None and into.path.exists():
            tell(f"The credentials of new principals are in {into.path}")
    if failed:
        raise typer.Exit(1)


@app.command()
@connected
def export(to: Remote) -> None:
    """Print what a server has as a setup file. Secrets are not in it, nor tables and views themselves.

    Example: `cynosure setup export > team.yaml`
    """

    async def work(server: "Server") -> dict[str, object]:
        from cynosure.cli.setup.export import export_document

        return await export_document(server)

    found = to.run(work)
    if to.as_json:
        print_json(found)
        return
    import yaml

    print(yaml.safe_dump(found, sort_keys=False, allow_unicode=True, indent=2), end="")


def _bases(server: "Server", document: "Document") -> dict[str, str]:
    """Where catalogs go whose file does not say it."""
    unsaid = [each.name for each in document.catalogs if not each.default_base_location]
    if not unsaid or server.settings is None:
        return {}
    from cynosure.server.catalog_storage import default_location

    return {name: default_location(server.settings, name) for name in unsaid}


def _print(outcome: "Outcome") -> None:
    text = f"{_SIGNS[outcome.action]} {outcome.text}"
    if outcome.result in ("done", "planned"):
        print(text)
        return
    tell(f"{text}: {outcome.result}{f': {outcome.error}' if outcome.error else ''}")


def _print_end(outcomes: "list[Outcome]", failed: int, *, is_dry_run: bool) -> None:
    if not outcomes:
        tell("Nothing to change.")
        return
    changes = len(outcomes) - failed
    verb = "would be made" if is_dry_run else "made"
    tell(f"{changes} changes {verb}, {failed} not." if failed else f"{changes} changes {verb}.")
