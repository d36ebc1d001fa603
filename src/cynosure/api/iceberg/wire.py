"""Bodies and queries of the Iceberg REST protocol.

Documents of the table and view specifications pass through as they are (`Document`): the `iceberg` room reads
them, and what it does not know must survive.

Must not break: fields that the protocol leaves out may also be sent as null; some clients do.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier, Namespace, check_name, check_namespace

Document = Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
"""JSON that is read further inside."""


MetricsDocument = Annotated[
    Raw,
    Meta(
        extra_json_schema={
            "type": "object",
            "required": ["report-type"],
            "properties": {"report-type": {"type": "string"}},
        }
    ),
]
"""A metrics report; only its type is read."""


class ListQuery(Struct, frozen=True, rename="camel"):
    """Paging of every list."""

    page_token: str | UnsetType = UNSET
    page_size: Annotated[int, Meta(ge=1)] | UnsetType = UNSET

    def paging(self) -> Paging:
        """What the operations understand."""
        return Paging(
            token=None if self.page_token is UNSET else self.page_token,
            size=None if self.page_size is UNSET else self.page_size,
        )


class NamespacesQuery(ListQuery, frozen=True, rename="camel"):
    """Query of listNamespaces."""

    parent: str | UnsetType = UNSET
    """Empty counts as absent."""


class ConfigQuery(Struct, frozen=True):
    """Query of getConfig."""

    warehouse: str | UnsetType = UNSET


class LoadTableQuery(Struct, frozen=True):
    """Query of loadTable."""

    snapshots: Literal["all", "refs"] = "all"


class DropTableQuery(Struct, frozen=True, rename="camel"):
    """Query of dropTable."""

    purge_requested: bool = False


class CatalogConfig(Struct, frozen=True):
    """Answer of getConfig."""

    defaults: dict[str, str]
    overrides: dict[str, str]
    endpoints: list[str]
    properties: dict[str, str] = {}
    """What the server can do, for clients that look for it here; in `defaults` as well."""
    idempotency_key_lifetime: str | UnsetType = field(default=UNSET, name="idempotency-key-lifetime")
    """For how long an Idempotency-Key may be repeated; without it, no client may send any."""


class CreateNamespaceRequest(Struct, frozen=True):
    """Body of createNamespace."""

    namespace: list[str]
    properties: dict[str, str] | None = None

    def checked_namespace(self) -> Namespace:
        """The namespace, refused if nothing can be called so."""
        return check_namespace(tuple(self.namespace))


class NamespaceResponse(Struct, frozen=True):
    """Answer of createNamespace and loadNamespaceMetadata."""

    namespace: Namespace
    properties: dict[str, str]


class UpdateNamespacePropertiesRequest(Struct, frozen=True):
    """Body of updateProperties."""

    removals: list[str] | None = None
    updates: dict[str, str] | None = None


class UpdateNamespacePropertiesResponse(Struct, frozen=True):
    """Answer of updateProperties."""

    updated: list[str]
    removed: list[str]
    missing: list[str]


class ListNamespacesResponse(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of listNamespaces."""

    namespaces: list[list[str]]
    next_page_token: str | None = None


class TableIdentifier(Struct, frozen=True):
    """A table or view."""

    namespace: list[str]
    name: str

    def checked(self, field: str) -> Identifier:
        """As the operations name it; refused if nothing can be called so."""
        return Identifier(
            check_namespace(tuple(self.namespace), field=f"{field}.namespace"),
            check_name(self.name, field=f"{field}.name"),
        )


class ListIdentifiersResponse(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of listTables and listViews."""

    identifiers: list[TableIdentifier]
    next_page_token: str | None = None


class RenameRequest(Struct, frozen=True):
    """Body of renameTable and renameView."""

    source: TableIdentifier
    destination: TableIdentifier


class CreateTableRequest(Struct, frozen=True, rename="kebab"):
    """Body of createTable."""

    name: str
    schema: Document
    location: str | None = None
    partition_spec: Document | UnsetType = UNSET
    write_order: Document | UnsetType = UNSET
    stage_create: bool | None = None
    properties: dict[str, str] | None = None


class StorageCredential(Struct, frozen=True):
    """What reaches the files below a prefix."""

    prefix: str
    config: dict[str, str]


class RemoteSigningConfig(Struct, frozen=True):
    """What a client sends along with what it wants signed."""

    properties: dict[str, str] = {}
    headers: dict[str, list[str]] = {}


class LoadTableResult(Struct, frozen=True, rename="kebab"):
    """Answer of loadTable, createTable and registerTable."""

    metadata: Document
    metadata_location: str | None = None
    """Missing for a staged table."""
    config: dict[str, str] = {}
    storage_credentials: list[StorageCredential] = []
    remote_signing_config: RemoteSigningConfig | None = None
    read_restrictions: Document | None = None
    """What a reader must apply before it shows anything; for the calling principal only."""


class CredentialsQuery(Struct, frozen=True, rename="camel"):
    """Query of loadCredentials."""

    plan_id: str | None = None
    """Of a scan that was planned on the server; credentials are those of the table."""
    referenced_by: str | None = field(default=None, name="referenced-by")
    """Views that led to the table. The caller's own rights decide."""


class LoadCredentialsResponse(Struct, frozen=True, rename="kebab"):
    """Answer of loadCredentials."""

    storage_credentials: list[StorageCredential]


class CommitTableResponse(Struct, frozen=True, rename="kebab"):
    """Answer of updateTable and unregisterTable."""

    metadata_location: str
    metadata: Document


class RegisterTableRequest(Struct, frozen=True, rename="kebab"):
    """Body of registerTable."""

    name: str
    metadata_location: str
    overwrite: bool | None = None


class CreateViewRequest(Struct, frozen=True, rename="kebab"):
    """Body of createView."""

    name: str
    schema: Document
    view_version: Document
    location: str | None = None
    properties: dict[str, str] | None = None


class RegisterViewRequest(Struct, frozen=True, rename="kebab"):
    """Body of registerView."""

    name: str
    metadata_location: str


class LoadViewResult(Struct, frozen=True, rename="kebab"):
    """Answer of every operation that gives a view."""

    metadata_location: str
    metadata: Document
    config: dict[str, str] = {}


def given(document: Raw | UnsetType) -> Raw | None:
    """A document that may be left out, or be null, which means the same."""
    return None if document is UNSET or bytes(document) == b"null" else document
