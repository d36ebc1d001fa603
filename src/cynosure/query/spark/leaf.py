"""The port of leaves: how one relation becomes a view in the session of a statement, in the driver.

A maintainer must not break: what comes out of `build` is opaque to the session that the user's text runs in.
"""

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cynosure.spark.kinds import JobLink


class LeafRelation(Struct, frozen=True):
    """A relation as the driver is told: nothing of it is a secret but the tokens."""

    view: str
    schema: dict[str, Any]
    """JSON of Spark's schema."""
    has_columns: bool
    size_bytes: int
    """What all rows have at most, as Spark reckons."""
    arrow_schema: bytes = b""
    """Of its batches, as Arrow serializes it; empty without columns."""
    fragments: tuple[str, ...] = ()
    tokens: dict[str, str] = {}
    table: dict[str, Any] = {}
    """What the native leaf reads (`native_table.NativeTable`, as builtins); empty for the isolated one."""

    def __repr__(self) -> str:
        return f"LeafRelation({self.view}, {len(self.fragments)} fragments, …)"


class LeafContext(Struct, frozen=True):
    """What all leaves of a statement have in common."""

    query_id: str
    address: str
    """Of the broker."""
    ca_pem: str


class Leaf(Protocol):
    """A way to read relations."""

    def build(
        self, session: "SparkSession", relation: LeafRelation, context: LeafContext, link: "JobLink"
    ) -> "DataFrame":
        """The relation as a frame of this session."""
        ...
