"""Doing the steps of a plan.

A maintainer must not break: a step that fails is told and the rest goes on, but for what needs it; new
credentials are handed over as soon as they exist.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cynosure.cli.catalogs import describe_catalog
from cynosure.cli.flags import read_secret
from cynosure.cli.names import make_absolute
from cynosure.cli.setup.document import CatalogPart, PrincipalPart, PrincipalRolePart
from cynosure.cli.setup.plan import Key, Step
from cynosure.cli.setup.policies import apply_policy
from cynosure.client.management_types import Credentials
from cynosure.common.errors import CynosureError

if TYPE_CHECKING:
    from cynosure.cli.transport import Server

OnCredentials = Callable[[str, Credentials], None]


class Outcome(Struct, frozen=True, omit_defaults=True):
    """What became of a step."""

    action: str
    text: str
    result: str
    """`done`, `planned`, `failed` or `not tried`."""
    error: str = ""


async def apply_plan(
    server: "Server",
    steps: Iterable[Step],
    *,
    on_outcome: Callable[[Outcome], None],
    on_credentials: OnCredentials,
) -> list[Outcome]:
    """Do all steps that can be done."""
    outcomes: list[Outcome] = []
    failed: dict[Key, str] = {}
    for step in steps:
        lacking = [failed[need] for need in step.needs if need in failed]
        if step.action == "refuse":
            outcome = Outcome(step.action, step.text, "failed")
        elif lacking:
            outcome = Outcome(step.action, step.text, "not tried", f"it needs {lacking[0]}")
        else:
            outcome = await _try(server, step, on_credentials)
        if outcome.result != "done" and step.action == "create":
            failed[step.key] = step.text
        outcomes.append(outcome)
        on_outcome(outcome)
    return outcomes


def preview(steps: Iterable[Step]) -> list[Outcome]:
    """What a plan would do."""
    return [
        Outcome(step.action, step.text, "failed" if step.action == "refuse" else "planned") for step in steps
    ]


async def _try(server: "Server", step: Step, on_credentials: OnCredentials) -> Outcome:
    try:
        await _do(server, step, on_credentials)
    except CynosureError as error:
        return Outcome(step.action, step.text, "failed", str(error))
    return Outcome(step.action, step.text, "done")


async def _do(server: "Server", step: Step, on_credentials: OnCredentials) -> None:
    management, payload = server.management, step.payload
    match step.action, step.key[0]:
        case "create", "principal role":
            part: PrincipalRolePart = payload
            await management.create_principal_role(part.name, part.properties, is_federated=part.federated)
        case "update", "principal role":
            found, changed = payload
            await management.update_principal_role(found, {**found.properties, **changed})
        case "create", "principal":
            principal: PrincipalPart = payload
            name = step.key[-1]
            made = await management.create_principal(name, principal.properties)
            on_credentials(name, made.credentials)
        case "update", "principal":
            found, changed = payload
            await management.update_principal(found, {**found.properties, **changed})
        case "assign", "assignment":
            await management.assign_principal_role(*payload)
        case "create", "catalog":
            await management.create_catalog(_describe(*payload))
        case "update", "catalog":
            found, properties, storage, connection = payload
            await management.update_catalog(
                found,
                properties={**found.properties, **properties},
                storage={**found.storage_config_info, **storage} if storage else None,
                connection=connection,
            )
        case "create", "namespace":
            catalog, levels, properties = payload
            await server.catalog(catalog).create_namespace(levels, properties)
        case "update", "namespace":
            catalog, levels, changed = payload
            await server.catalog(catalog).update_namespace(levels, updates=changed)
        case ("create" | "update", "policy") | ("attach", "attachment"):
            await apply_policy(server, *payload)
        case "create", "catalog role":
            await management.create_catalog_role(*payload)
        case "update", "catalog role":
            catalog, found, changed = payload
            await management.update_catalog_role(catalog, found, {**found.properties, **changed})
        case "assign", "catalog assignment":
            await management.assign_catalog_role(*payload)
        case "grant", "grant":
            await management.grant(*payload)
        case _:
            raise AssertionError(step.action, step.key)


def _describe(part: CatalogPart, base: str) -> dict[str, Any]:
    storage = {**part.storage_options(), **_read_secrets(part)}
    described = describe_catalog(
        part.name,
        make_absolute(base),
        [make_absolute(each) for each in part.allowed_locations],
        dict(part.properties),
        storage,
        storage_type=part.storage_type,
        catalog_type=part.type,
    )
    if part.connection is not None:
        described["connectionConfigInfo"] = part.connection.describe()
    return described


def _read_secrets(part: CatalogPart) -> dict[str, str]:
    found = {
        "secretAccessKey": read_secret(
            part.secret_access_key_file,
            part.secret_access_key_env,
            flag="secret_access_key",
            prompt="Secret access key",
        ),
        "serviceAccountKey": read_secret(
            part.service_account_key_file,
            part.service_account_key_env,
            flag="service_account_key",
            prompt="Key of the service account",
            is_one_line=False,
        ),
        "clientSecret": read_secret(
            part.client_secret_file, part.client_secret_env, flag="client_secret", prompt="Client secret"
        ),
    }
    return {name: secret for name, secret in found.items() if secret is not None}
