"""Answers of the catalog, as far as they are read here.

A maintainer must not break: what prints one of these does not print credentials.
"""

from typing import Any

from msgspec import Raw, Struct


class TokenAnswer(Struct, frozen=True):
    """A token on behalf of somebody."""

    access_token: str
    expires_in: float = 60.0

    def __repr__(self) -> str:
        return "TokenAnswer(…)"


class TokenClaims(Struct, frozen=True, rename="camel"):
    """What a token of our catalog says about its subject. It came from there: nothing is verified."""

    sub: str
    principal_id: int
    realm: str


class LoadedTable(Struct, frozen=True, rename="kebab"):
    """Answer of loadTable."""

    metadata: dict[str, Any]
    read_restrictions: dict[str, Any] = {}


class ViewRepresentation(Struct, frozen=True):
    """The query of a view in one dialect."""

    type: str
    sql: str = ""
    dialect: str = ""


class ViewVersion(Struct, frozen=True, rename="kebab"):
    """A version of a view."""

    version_id: int
    schema_id: int
    representations: list[ViewRepresentation]
    default_namespace: list[str] = []
    default_catalog: str | None = None


class _Column(Struct, frozen=True):
    name: str


class ViewSchema(Struct, frozen=True, rename="kebab"):
    """The columns of a view."""

    fields: list[_Column]
    schema_id: int = 0


class ViewMetadata(Struct, frozen=True, rename="kebab"):
    """A view."""

    current_version_id: int
    versions: list[ViewVersion]
    schemas: list[ViewSchema]


class LoadedView(Struct, frozen=True):
    """Answer of loadView."""

    metadata: ViewMetadata


class StorageCredential(Struct, frozen=True):
    """How files below a place are reached."""

    prefix: str
    config: dict[str, str]

    def __repr__(self) -> str:
        return "StorageCredential(…)"


class ContentFile(Struct, frozen=True, rename="kebab"):
    """A data or delete file of a plan."""

    content: str
    file_path: str
    file_format: str
    file_size_in_bytes: int
    record_count: int
    spec_id: int = 0
    partition: list[Any] = []
    split_offsets: list[int] | None = None
    equality_ids: list[int] | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None
    key_metadata: str | None = None


class FileTask(Struct, frozen=True, rename="kebab"):
    """A file to read."""

    data_file: ContentFile
    delete_file_references: list[int] | None = None
    residual_filter: Raw = Raw(b"true")


class PlanPage(Struct, frozen=True, rename="kebab"):
    """Some tasks of a plan: the answer of planTableScan, fetchPlanningResult or fetchScanTasks."""

    status: str = "completed"
    plan_id: str | None = None
    file_scan_tasks: list[FileTask] | None = None
    delete_files: list[ContentFile] | None = None
    plan_tasks: list[str] | None = None
    storage_credentials: list[StorageCredential] | None = None
    read_restrictions: dict[str, Any] = {}
    error: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"PlanPage({self.status}, …)"


class GivenCredentials(Struct, frozen=True, rename="kebab"):
    """Answer of loadCredentials."""

    storage_credentials: list[StorageCredential] = []


class _Identifier(Struct, frozen=True):
    namespace: list[str]
    name: str


class IdentifierPage(Struct, frozen=True, rename="kebab"):
    """Answer of listTables and listViews."""

    identifiers: list[_Identifier]
    next_page_token: str | None = None


class NamespacePage(Struct, frozen=True, rename="kebab"):
    """Answer of listNamespaces."""

    namespaces: list[list[str]]
    next_page_token: str | None = None


class _Catalog(Struct, frozen=True):
    name: str


class CatalogPage(Struct, frozen=True, rename="camel"):
    """Answer of listCatalogs."""

    catalogs: list[_Catalog]
    next_page_token: str | None = None


class Namespace(Struct, frozen=True):
    """Answer of loadNamespace."""

    properties: dict[str, str] = {}
