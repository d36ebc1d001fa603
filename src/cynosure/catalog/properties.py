"""Properties of catalogs, namespaces, tables and views: what may be stored, and by whom it may be set.

A maintainer must not break: the limit counts bytes, as they are stored; characters would let through four
times as much. Names that are reserved stay so: what the server will one day read there must not have been put
there by a client before.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from cynosure.catalog.settings import SizeSettings
from cynosure.common.errors import BadInput
from cynosure.common.secrets import looks_secret

OURS: Final = "cynosure."
"""Properties that this server reads begin so."""
THEIRS: Final = "polaris."
"""Apache Polaris reserves these. They mean nothing here, but what it refuses is refused."""

SETTABLE: Final = frozenset({"cynosure.retention.enabled", "cynosure.commit.rebase-appends"})
"""Properties of ours that are for users to set."""

_POLARIS_SETTABLE: Final = frozenset(
    f"polaris.config.{name}"
    for name in (
        "add-trailing-slash-to-location",
        "allow-dropping-non-empty-passthrough-facade-catalog",
        "allow-federated-catalogs-credential-vending",
        "allow.client-specified.table.location",
        "allow.external.metadata.file.location",
        "allow.external.table.location",
        "allow.overlapping.table.location",
        "allow.unstructured.table.location",
        "cleanup.on.catalog.drop",
        "cleanup.on.namespace.drop",
        "default-table-location-object-storage-prefix.enabled",
        "default-unique-table-location.enabled",
        "drop-with-purge.enabled",
        "enable-fine-grained-update-table-privileges",
        "enable-sub-catalog-rbac-for-federated-catalogs",
        "enable.credential.vending",
        "iceberg-commit-max-retries",
        "list-pagination-enabled",
        "list-pagination-max-page-size",
        "namespace-custom-location.enabled",
        "purge-view-metadata-on-drop",
        "rollback.compaction.on-conflicts.enabled",
        "supported.storage.types",
    )
)
"""Settings of Apache Polaris that its set-ups name: kept, so that these can be taken over. Three do
something: `enable.credential.vending` (`facade.py`), `allow.external.metadata.file.location` (`locations.py`)
and `drop-with-purge.enabled` (`purging/purge.py`)."""

_HARMLESS: Final = _POLARIS_SETTABLE | {
    "token-refresh-enabled",
    "token-exchange-enabled",
    "token-expires-in-ms",
    "enable.credential.vending",
    "cynosure.federation.credentials",
}
"""Settings of Iceberg's clients, of Polaris and of ours, which hold no secret whatever they are called."""


def check_properties(
    properties: Mapping[str, str], sizes: SizeSettings, *, field: str = "properties"
) -> None:
    """Refuse properties that are too large together, or have no name."""
    if "" in properties:
        raise BadInput("A property has an empty name", field=field, fix="Name the property.")
    size_bytes = sum(len(name.encode()) + len(value.encode()) for name, value in properties.items())
    if size_bytes > sizes.properties_bytes:
        raise BadInput(
            "The properties are too large",
            field=field,
            fix="Store less in properties, or raise catalog.sizes.properties_bytes.",
            size_bytes=size_bytes,
            max_bytes=sizes.properties_bytes,
        )


def check_reserved(names: Iterable[str], *, field: str = "properties") -> None:
    """Refuse names that are not for users to set or remove."""
    for name in names:
        lower = name.strip().lower()
        if lower.startswith((OURS, THEIRS)) and name not in SETTABLE and name not in _POLARIS_SETTABLE:
            raise BadInput(
                "The property is reserved",
                field=field,
                fix=f"Use a name that begins neither with {OURS} nor with {THEIRS}.",
                property=name,
            )


def check_ours(names: Iterable[str], *, field: str = "metadata.properties") -> None:
    """Refuse, in a file that a user names, what only this server may set.

    What Apache Polaris reserves may be there: tables come from it.
    """
    check_reserved((name for name in names if name.strip().lower().startswith(OURS)), field=field)


def check_no_secrets(properties: Mapping[str, str], *, field: str = "properties") -> None:
    """Refuse secrets in a catalog's properties: every client is told them."""
    for name, value in properties.items():
        if is_secret(name, value):
            raise BadInput(
                "The property looks like a secret, and every client of the catalog would be told it",
                field=field,
                fix="Put credentials of the storage into its configuration; give clients theirs themselves.",
                property=name,
            )


def is_secret(name: str, value: str) -> bool:
    """Whether a property looks as if it held a secret."""
    return name not in _HARMLESS and looks_secret(name, value)


def is_for_clients(name: str, value: str) -> bool:
    """Whether a catalog's property is told to its clients."""
    # Also secrets are left out, though none can be set: a catalog may be older than that rule.
    return not name.strip().lower().startswith((OURS, THEIRS)) and not is_secret(name, value)
