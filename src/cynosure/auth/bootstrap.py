"""How a realm gets its first principal: `root`, with the role `service_admin`, which may manage the realm.

One commit makes all of it, so of several servers that start at once exactly one makes a root, and its
credentials are the ones that are good. A store of a version that had no principals gets its roots the same
way.

Must not break: credentials that were not committed are shown to nobody.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from cynosure.auth.caller import operator_caller
from cynosure.auth.changes import told
from cynosure.auth.closing import is_closed, require_open
from cynosure.auth.committing import commit_part
from cynosure.auth.credential_files import CredentialFiles
from cynosure.auth.credentials import FIRST_GENERATION, Credentials, new_client_id, new_client_secret
from cynosure.auth.entities import (
    PRINCIPAL,
    PRINCIPAL_ROLE,
    ROOT,
    SERVICE_ADMIN,
    PrincipalEntity,
    PrincipalRoleEntity,
)
from cynosure.auth.identities import Identities
from cynosure.auth.names import check_client_id, check_client_secret
from cynosure.auth.operations.create_principal import require_free_client
from cynosure.auth.operations.reset_credentials import reset_credentials
from cynosure.auth.principals import (
    assignment_keys,
    client_key,
    find_principal,
    principal_key,
    read_principals,
    role_key,
)
from cynosure.auth.rbac.grants import pack_privileges
from cynosure.auth.rbac.privileges import Privilege
from cynosure.common.errors import AlreadyExists, BadInput, Misconfigured
from cynosure.common.secrets import Secret
from cynosure.persistence import scopes
from cynosure.persistence.commit import Change, Prepared, View, find_object
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import REALMS
from cynosure.persistence.spi import RealmId
from cynosure.persistence.store import NewObject

VARIABLES: Final = ("CYNOSURE_BOOTSTRAP_CREDENTIALS", "POLARIS_BOOTSTRAP_CREDENTIALS")
"""Where credentials may be given. The first that is set counts."""
SYSTEM: Final = "system"

_FIX: Final = "Write realm,clientId,secret for each realm, with semicolons between them."


class Bootstrapped(Struct, frozen=True):
    """A realm that has just got its root."""

    realm: RealmId
    credentials: Credentials
    path: Path | None
    """Where they are; `None` when they were given, and so are known."""


# --- what is given --------------------------------------------------------------------------------


def read_given(environment: Mapping[str, str]) -> dict[RealmId, Credentials]:
    """Credentials of roots, by realm, as the environment gives them."""
    for variable in VARIABLES:
        if text := environment.get(variable, "").strip():
            return _parse(text, variable)
    return {}


def _parse(text: str, variable: str) -> dict[RealmId, Credentials]:
    # Messages tell which entry is wrong by its number: any other part of it may be the secret.
    given: dict[RealmId, Credentials] = {}
    for number, entry in enumerate(text.strip(";").split(";"), 1):
        parts = [part.strip() for part in entry.split(",")]
        if len(parts) != 3:
            raise _malformed(variable, number, "It does not have three parts", _FIX)
        realm, client_id, secret = parts
        try:
            scopes.check_realm_name(realm)
            credentials = Credentials(check_client_id(client_id), check_client_secret(Secret(secret)))
        except BadInput as error:
            raise _malformed(variable, number, error.message, error.fix) from None
        if realm in given:
            raise _malformed(variable, number, "Its realm is named twice", "Name every realm once.")
        given[RealmId(realm)] = credentials
    return given


def _malformed(variable: str, number: int, reason: str, fix: str) -> Misconfigured:
    return Misconfigured(
        "Bootstrap credentials cannot be read", fix=fix, variable=variable, entry=number, reason=reason
    )


# --- at the start ---------------------------------------------------------------------------------


async def ensure_realms_bootstrapped(
    identities: Identities, given: Mapping[RealmId, Credentials], files: CredentialFiles
) -> list[Bootstrapped]:
    """Give every realm a root that has none; those that got one from this process.

    Realms that are given credentials and do not exist are created. Roots that exist are left alone.
    """
    persistence = identities.persistence
    realms = persistence.committer(REALMS)
    for realm in given.keys() - set(await scopes.list_realms(realms)):
        with suppress(AlreadyExists):  # Another server was faster.
            await scopes.create_realm(
                realms,
                realm,
                backend=persistence.backend,
                ids=persistence.ids,
                clock=persistence.clock,
                principal=SYSTEM,
            )
    made: list[Bootstrapped] = []
    for realm in await scopes.list_realms(realms):
        state = (await read_principals(persistence, realm)).state
        if await is_closed(state):
            continue
        if await state.find("names", principal_key(ROOT)) is not None:
            made += await _settle_drafts(identities, realm, files)
        elif realm in given:
            credentials = await bootstrap_realm(identities, realm, given[realm])
            made += [] if credentials is None else [Bootstrapped(realm, credentials, None)]
        else:
            made += await _bootstrap_randomly(identities, realm, files)
    return made


async def _bootstrap_randomly(
    identities: Identities, realm: RealmId, files: CredentialFiles
) -> list[Bootstrapped]:
    credentials = Credentials(new_client_id(identities), new_client_secret(identities))
    # Order: written before they are good, so that good ones are never lost. When the outcome is unknown the
    # draft stays, and the next start finds out.
    files.write_draft(realm, credentials)
    await bootstrap_realm(identities, realm, credentials)
    return await _settle_drafts(identities, realm, files)


async def _settle_drafts(
    identities: Identities, realm: RealmId, files: CredentialFiles
) -> list[Bootstrapped]:
    """The draft that is good gets its place; others, of those who lost or died, are discarded.

    Only once there is a root: then no draft can become good any more.
    """
    root = await find_principal(identities.persistence, realm, ROOT)
    if root is None:
        return []
    # Found out now, and not by a login that is refused although its secret is right.
    for secret in root.secrets[:1]:
        identities.hasher.require_pepper(secret)
    found: list[Bootstrapped] = []
    for draft in files.list_drafts(realm):
        credentials = files.find_content(draft)
        is_good = (
            credentials is not None
            and credentials.client_id == root.client_id
            and identities.hasher.find_match(credentials.client_secret, root.secrets) is not None
        )
        if credentials is None or not is_good:
            files.discard(draft)
        elif (path := files.publish(draft, realm)) is not None:
            found.append(Bootstrapped(realm, credentials, path))
    return found


# --- one realm ------------------------------------------------------------------------------------


async def bootstrap_realm(
    identities: Identities, realm: RealmId, credentials: Credentials | None = None
) -> Credentials | None:
    """Make its root, with these credentials or random ones; `None` when it has one already."""
    wanted = credentials or Credentials(new_client_id(identities), new_client_secret(identities))

    async def prepare(view: View) -> Prepared[bool]:
        await require_open(view)
        return await _first_principal(identities, view, wanted)

    caller = operator_caller(SYSTEM, realm)
    is_made = await commit_part(identities.committer(realm), caller, "bootstrap-realm", prepare)
    return wanted if is_made else None


async def reset_root(identities: Identities, realm: RealmId) -> Credentials:
    """New credentials for its root, which is made if there is none. The old ones are out at once."""
    await read_principals(identities.persistence, realm)
    made = await bootstrap_realm(identities, realm)
    if made is not None:
        return made
    return (await reset_credentials(identities, operator_caller(realm=realm), ROOT)).credentials


async def _first_principal(identities: Identities, view: View, credentials: Credentials) -> Prepared[bool]:
    """What is missing of root, its role, and that it has it. The result: whether root was."""
    persistence = identities.persistence
    now_us = persistence.clock.now_us()
    changes: dict[str, dict[bytes, bytes | None]] = {"names": {}, "ids": {}, "clients": {}, "assignments": {}}
    objects: list[NewObject] = []
    feed: list[Change] = []
    role = await find_object(view, "names", role_key(SERVICE_ADMIN), PRINCIPAL_ROLE)
    if role is None:
        role = PrincipalRoleEntity(
            id=persistence.ids.next(),
            name=SERVICE_ADMIN,
            created_us=now_us,
            updated_us=now_us,
            realm_privileges=pack_privileges(Privilege.SERVICE_MANAGE_ACCESS.bit),
        )
        value = ObjRef(role.id, PRINCIPAL_ROLE.name).pack()
        changes["names"][role_key(SERVICE_ADMIN)] = value
        changes["ids"][encode_id_key(role.id)] = role_key(SERVICE_ADMIN)
        objects.append(NewObject(PRINCIPAL_ROLE, role.id, role))
        feed.append(told("principal-role-created", role, after=value))
    root = await find_object(view, "names", principal_key(ROOT), PRINCIPAL)
    is_missing = root is None
    if root is None:
        client = client_key(credentials.client_id)
        await require_free_client(view, client)
        root = PrincipalEntity(
            id=persistence.ids.next(),
            name=ROOT,
            client_id=credentials.client_id,
            created_us=now_us,
            updated_us=now_us,
            secrets=(identities.hasher.hash(credentials.client_secret, FIRST_GENERATION),),
        )
        value = ObjRef(root.id, PRINCIPAL.name).pack()
        changes["names"][principal_key(ROOT)] = value
        changes["ids"][encode_id_key(root.id)] = changes["clients"][client] = principal_key(ROOT)
        objects.append(NewObject(PRINCIPAL, root.id, root))
        feed.append(told("principal-created", root, after=value))
    keys = assignment_keys(root.id, role.id)
    if await view.find("assignments", keys[0]) is None:
        changes["assignments"] = dict.fromkeys(keys, b"")
        feed.append(told("principal-role-assigned", role, principal=ROOT))
    return Prepared(is_missing, changes, objects, feed)
