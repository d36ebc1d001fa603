"""PyIceberg against a catalog of ours: how tests open it, and the rows they write.

A maintainer must not break: every listing takes several pages (`rest-page-size`), as on a large catalog.
"""

from collections.abc import Sequence

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

from cynosure.testing.catalog_server import RestCatalog

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType(), required=False),
    NestedField(3, "at", TimestampType(), required=False),
    identifier_field_ids=[1],
)
ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("city", pa.string()),
        pa.field("at", pa.timestamp("us")),
    ]
)

DAY_US = 86_400_000_000


def connect(catalog: RestCatalog, **properties: str) -> Catalog:
    return load_catalog(
        "c", type="rest", uri=catalog.uri, **{"rest-page-size": "2"}, **catalog.properties, **properties
    )


def rows(*cities: str, first: int = 1) -> pa.Table:
    """One row per city: ids from `first` on, each a day later than the one before."""
    ids = range(first, first + len(cities))
    columns = {"id": list(ids), "city": list(cities), "at": [number * DAY_US for number in ids]}
    return pa.table(columns, schema=ARROW)


def read(table: Table, **scan: object) -> list[tuple[int, str | None]]:
    """Ids and cities, in the order of the ids, through a scan of the data files."""
    found = table.scan(**scan).to_arrow().sort_by("id")  # type: ignore[arg-type]
    return list(zip(found["id"].to_pylist(), found["city"].to_pylist(), strict=True))


def flatten(identifiers: Sequence[tuple[str, ...]]) -> list[str]:
    """The last names, sorted: what a listing found."""
    return sorted(identifier[-1] for identifier in identifiers)
