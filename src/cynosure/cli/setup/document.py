"""What a setup file may say.

A maintainer must not break: what is not understood is refused before anything is done; a file that is only
partly applied is worse than one that is not.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from cynosure.cli.names import make_absolute
from cynosure.cli.setup.connections import ConnectionPart
from cynosure.cli.setup.levels import Levels, levels_of
from cynosure.cli.setup.policies import Parts, check_policies, read_files
from cynosure.cli.storage_flags import fields_of, kind_of
from cynosure.client.catalog import Namespace
from cynosure.client.management_types import Grant, Kind, make_grant
from cynosure.common.errors import BadInput

Properties = dict[str, str]


class _Part(Struct, frozen=True, forbid_unknown_fields=True):
    """Strict: a misspelt key is an error, not a silent nothing."""


class PrincipalPart(_Part, frozen=True):
    """A principal."""

    type: str = "service"
    """Read for files of others, not used."""
    properties: Properties = field(default_factory=dict)
    roles: list[str] = field(default_factory=list)
    """Principal roles it gets."""


class PrincipalRolePart(_Part, frozen=True):
    """A principal role with more than a name."""

    name: str
    properties: Properties = field(default_factory=dict)
    federated: bool = False


class NamespacePart(_Part, frozen=True):
    """A namespace with more than a name."""

    name: Levels
    properties: Properties = field(default_factory=dict)
    location: str | None = None


class NamespaceGrants(_Part, frozen=True):
    """Privileges on one namespace."""

    namespace: Levels
    privileges: list[str]


class LeafGrants(_Part, frozen=True):
    """Privileges on one table, view or policy."""

    namespace: Levels
    name: str
    privileges: list[str]


class Privileges(_Part, frozen=True):
    """What is granted to a catalog role."""

    catalog: list[str] = field(default_factory=list)
    namespace: dict[str, list[str]] | list[NamespaceGrants] = field(default_factory=list)
    table: list[LeafGrants] = field(default_factory=list)
    view: list[LeafGrants] = field(default_factory=list)
    policy: list[LeafGrants] = field(default_factory=list)

    def grants(self) -> list[Grant]:
        """One by one."""
        found = [make_grant("catalog", privilege) for privilege in self.catalog]
        by_namespace = self.namespace
        if isinstance(by_namespace, dict):
            by_namespace = [NamespaceGrants(name, given) for name, given in by_namespace.items()]
        for part in by_namespace:
            levels = levels_of(part.namespace)
            found += [make_grant("namespace", privilege, levels) for privilege in part.privileges]
        leaves: list[tuple[Kind, list[LeafGrants]]] = [
            ("table", self.table),
            ("view", self.view),
            ("policy", self.policy),
        ]
        for kind, parts in leaves:
            for leaf in parts:
                levels = levels_of(leaf.namespace)
                found += [make_grant(kind, privilege, levels, leaf.name) for privilege in leaf.privileges]
        return found


class CatalogRolePart(_Part, frozen=True):
    """A catalog role."""

    properties: Properties = field(default_factory=dict)
    assign_to: list[str] = field(default_factory=list)
    """Principal roles that get it."""
    privileges: Privileges = Privileges()


class CatalogPart(_Part, frozen=True, kw_only=True):
    """A catalog with what is in it."""

    name: str
    type: str = "internal"
    storage_type: str | None = None
    """Left out, the location says it."""
    default_base_location: str | None = None
    """Left out, on the server's own machine: below its data directory."""
    allowed_locations: list[str] = field(default_factory=list)
    properties: Properties = field(default_factory=dict)
    storage_name: str | None = None
    region: str | None = None
    endpoint: str | None = None
    endpoint_internal: str | None = None
    sts_endpoint: str | None = None
    sts_unavailable: bool | None = None
    kms_unavailable: bool | None = None
    path_style_access: bool | None = None
    role_arn: str | None = None
    external_id: str | None = None
    user_arn: str | None = None
    current_kms_key: str | None = None
    allowed_kms_keys: list[str] | None = None
    access_key_id: str | None = None
    secret_access_key_env: str | None = None
    """Variable that holds the secret of the access key, which itself has no place in such a file."""
    secret_access_key_file: str | None = None
    gcs_service_account: str | None = None
    token_endpoint: str | None = None
    service_account_key_env: str | None = None
    """Variable that holds the key of a service account, in JSON."""
    service_account_key_file: str | None = None
    tenant_id: str | None = None
    multi_tenant_app_name: str | None = None
    consent_url: str | None = None
    hierarchical: bool | None = None
    authority_host: str | None = None
    client_id: str | None = None
    client_secret_env: str | None = None
    """Variable that holds the secret of the application."""
    client_secret_file: str | None = None
    connection: ConnectionPart | None = None
    """The remote that owns its tables; of an external catalog."""
    roles: dict[str, CatalogRolePart] = field(default_factory=dict)
    namespaces: list[str | list[str] | NamespacePart] = field(default_factory=list)
    policies: Parts = field(default_factory=list)

    def storage_options(self) -> dict[str, Any]:
        """What is said about its storage, as the management API names it, without secrets."""
        given = {name: getattr(self, name) for name in _STORAGE_FIELDS}
        return {_camel(name): value for name, value in given.items() if value is not None}

    def find_kind(self) -> str | None:
        """The type of its storage, if the file says it."""
        if self.storage_type is not None:
            return self.storage_type.upper()
        base = self.default_base_location
        return kind_of(make_absolute(base)) if base else None

    def foreign_fields(self) -> list[str]:
        """What is said about its storage that storages of its type do not have."""
        if (kind := self.find_kind()) is None:
            return []
        said = [name for name in _STORAGE_FIELDS if getattr(self, name) is not None]
        said += [
            name
            for name in _SECRETS
            if getattr(self, f"{name}_env") is not None or getattr(self, f"{name}_file") is not None
        ]
        known = fields_of(kind)
        return [name for name in said if _camel(name) not in known]

    def namespace_parts(self) -> dict[Namespace, Properties]:
        """Every namespace that must exist, each after the one it is in."""
        found: dict[Namespace, Properties] = {}
        for each in self.namespaces:
            part = each if isinstance(each, NamespacePart) else NamespacePart(each)
            levels = levels_of(part.name)
            location = {"location": part.location} if part.location else {}
            found[levels] = {**part.properties, **location}
        above = {levels[:depth] for levels in found for depth in range(1, len(levels))}
        return {levels: found.get(levels, {}) for levels in sorted(above | set(found))}


class Document(_Part, frozen=True):
    """The whole file."""

    principals: dict[str, PrincipalPart] = field(default_factory=dict)
    principal_roles: list[str | PrincipalRolePart] = field(default_factory=list)
    catalogs: list[CatalogPart] = field(default_factory=list)

    def role_parts(self) -> dict[str, PrincipalRolePart]:
        """The principal roles by name."""
        parts = [PrincipalRolePart(each) if isinstance(each, str) else each for each in self.principal_roles]
        return {each.name: each for each in parts}


_STORAGE_FIELDS: Final = (
    "storage_name",
    "region",
    "endpoint",
    "endpoint_internal",
    "sts_endpoint",
    "sts_unavailable",
    "kms_unavailable",
    "path_style_access",
    "role_arn",
    "external_id",
    "user_arn",
    "current_kms_key",
    "allowed_kms_keys",
    "access_key_id",
    "gcs_service_account",
    "token_endpoint",
    "tenant_id",
    "multi_tenant_app_name",
    "consent_url",
    "hierarchical",
    "authority_host",
    "client_id",
)
_SECRETS: Final = ("secret_access_key", "service_account_key", "client_secret")
"""Each with `_env` or `_file` behind it."""
KEY_FIELDS: Final = ("accessKeyId", "clientId")
"""Which of these belong to keys, so that servers do not show them."""


def load_document(path: Path) -> Document:
    """Read a setup file; `BadInput` names the place that is wrong."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        found = yaml.safe_load(text)
    except OSError as error:
        raise BadInput(
            "The file cannot be read",
            field="FILE",
            fix="Name a file that exists and is yours to read.",
            path=str(path),
            reason=error.strerror or str(error),
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(
            "The file is not YAML",
            field="FILE",
            fix="Correct what the reason names.",
            path=str(path),
            reason=" ".join(str(error).split()),
        ) from error
    try:
        document = _check(msgspec.convert({} if found is None else found, type=Document))
    except msgspec.ValidationError as error:
        raise BadInput(
            "The file says something that is not understood, so nothing was done",
            field="FILE",
            fix="Correct it; cynosure setup export shows the form, docs/operations/cli.md explains it.",
            path=str(path),
            reason=str(error),
        ) from error
    return _with_files(document, path.parent)


def _with_files(document: Document, folder: Path) -> Document:
    try:
        catalogs = [
            msgspec.structs.replace(each, policies=read_files(each.policies, folder))
            for each in document.catalogs
        ]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            "The file of a policy cannot be read",
            field="FILE",
            fix="Name a file of UTF-8 text; its path is relative to the setup file.",
            reason=str(error),
        ) from error
    return msgspec.structs.replace(document, catalogs=catalogs)


def _check(document: Document) -> Document:
    names = [each.name for each in document.catalogs]
    if len(set(names)) != len(names):
        raise msgspec.ValidationError("Two catalogs have one name - at `$.catalogs`")
    for at, catalog in enumerate(document.catalogs):
        if catalog.type.lower() not in ("internal", "external"):
            raise msgspec.ValidationError(f"A catalog is internal or external - at `$.catalogs[{at}].type`")
        if foreign := catalog.foreign_fields():
            kind = f"A storage of type {catalog.find_kind()}"
            raise msgspec.ValidationError(f"{kind} has no {', '.join(foreign)} - at `$.catalogs[{at}]`")
        if wrong := check_policies(catalog.policies):
            raise msgspec.ValidationError(f"{wrong} - at `$.catalogs[{at}].policies`")
        if any(not levels or not all(levels) for levels in catalog.namespace_parts()):
            raise msgspec.ValidationError(
                f"A level of a namespace is empty - at `$.catalogs[{at}].namespaces`"
            )
    return document


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
