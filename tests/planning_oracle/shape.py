"""Schemas and partition specs of a random table, and how they change while the table lives.

A maintainer must not break: ids are never used twice, a column of the current spec is never dropped, and a
version 1 table keeps its partition fields in place, with void for those it dropped.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from cynosure.iceberg.partitioning import PartitionField, PartitionSpec
from cynosure.iceberg.schema import Schema, decode_schema
from tests.iceberg.samples import to_json
from tests.planning_oracle.values import NAMES, WIDER, their_transform, transforms_of

Row = dict[int, Any]
"""Values by field id. A column that the file does not have is absent, and reads as null."""


@dataclass(frozen=True)
class Column:
    """A column, or a struct of columns."""

    id: int
    name: str
    type: str = ""
    inside: tuple["Column", ...] = ()

    def as_json(self) -> dict[str, Any]:
        kind: Any = self.type
        if self.inside:
            kind = {"type": "struct", "fields": [one.as_json() for one in self.inside]}
        return {"id": self.id, "name": self.name, "required": False, "type": kind}


@dataclass(frozen=True)
class Leaf:
    """A column that holds values, by its full name."""

    id: int
    path: str
    type: str


class Shape:
    """What a table looks like now, and what it looked like before."""

    def __init__(self, rng: random.Random, version: int, *, is_plain: bool) -> None:
        self._rng = rng
        self._is_plain = is_plain
        self.version = version
        self.last_id = 0
        self._number = 0
        columns = [self._new_column() for _ in range(rng.randrange(3, 6))]
        columns.insert(rng.randrange(len(columns)), self._new_struct())
        self.columns: list[list[Column]] = [columns]
        self.specs: list[PartitionSpec] = [PartitionSpec(())]
        if rng.random() < 0.8:
            self.specs = []
            self.add_spec()

    # Columns.

    def schema(self, schema_id: int = -1) -> Schema:
        return decode_schema(self.schema_json(schema_id))

    def schema_json(self, schema_id: int = -1) -> bytes:
        number = schema_id % len(self.columns)
        fields = [one.as_json() for one in self.columns[number]]
        return to_json({"type": "struct", "schema-id": number, "fields": fields})

    def leaves(self, schema_id: int = -1) -> list[Leaf]:
        return [*_walk(self.columns[schema_id], "")]

    def _new_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def _new_name(self) -> str:
        self._number += 1
        return f"{self._rng.choice(['Name', 'd.t', 'x y', 'né'])}{self._number}"

    def _new_column(self) -> Column:
        return Column(self._new_id(), self._new_name(), self._rng.choice(NAMES))

    def _new_struct(self) -> Column:
        outer = self._new_id()
        inner = Column(self._new_id(), "in", inside=(self._new_column(),))
        return Column(outer, self._new_name(), inside=(self._new_column(), inner))

    def evolve(self) -> None:
        """One change of the schema."""
        rng = self._rng
        columns = list(self.columns[-1])
        at = rng.randrange(len(columns))
        match rng.choice(["add", "drop", "rename", "move", "widen"]):
            case "add":
                columns.insert(at, self._new_column())
            case "drop":
                used = {field.source_id for field in self.specs[-1].fields if field.transform != "void"}
                dropped = {one.id for one in _walk([columns[at]], "")}
                if len(columns) > 2 and not used & dropped:
                    del columns[at]
            case "rename":
                columns[at] = replace(columns[at], name=self._new_name())
            case "move":
                rng.shuffle(columns)
            case _:
                for each in [number for number, one in enumerate(columns) if one.type in WIDER]:
                    columns[each] = replace(columns[each], type=WIDER[columns[each].type])
        if columns != self.columns[-1]:
            self.columns.append(columns)

    # Partitions.

    def add_spec(self) -> None:
        """Another way to partition the table, on its current columns."""
        rng = self._rng
        fields: list[PartitionField] = []
        if self.version == 1 and self.specs:
            fields = [as_void(one) if rng.random() < 0.5 else one for one in self.specs[-1].fields]
        leaves = self.leaves()
        known = {
            (field.source_id, field.transform): field
            for spec in self.specs
            for field in spec.fields
            if self.version > 1
        }
        for leaf in rng.sample(leaves, k=min(len(leaves), rng.randrange(3))):
            transform = rng.choice(transforms_of(leaf.type))
            if leaf.type == "uuid" and self._is_plain:
                transform = "bucket[2]"  # PyIceberg 0.12 compares a UUID in a partition with bytes
            again = known.get((leaf.id, transform))
            if again is None:
                used = [spec.highest_field_id for spec in self.specs] + [one.field_id or 0 for one in fields]
                id_ = 1000 + len(fields) if self.version == 1 else 1 + max([999, *used])
                again = PartitionField(f"p{id_}_{len(self.specs)}", transform, leaf.id, field_id=id_)
            fields.append(again)
        self.specs.append(PartitionSpec(tuple(fields), spec_id=len(self.specs)))

    def is_usable(self, spec: PartitionSpec) -> bool:
        """Whether all columns of a spec are still there: only then files can be written with it."""
        ids = {leaf.id for leaf in self.leaves()}
        return all(field.transform == "void" or field.source_id in ids for field in spec.fields)

    def partition(self, spec: PartitionSpec, row: Row) -> tuple[Any, ...]:
        types = {leaf.id: leaf.type for leaf in self.leaves()}
        return tuple(transformed(field, types, row) for field in spec.fields)


def as_void(field: PartitionField) -> PartitionField:
    return PartitionField(field.name, "void", field.source_id, field_id=field.field_id)


def transformed(field: PartitionField, types: dict[int, str], row: Row) -> Any:
    value = row.get(field.sources[0])
    return None if value is None else their_transform(field.transform, types[field.sources[0]])(value)


def _walk(columns: list[Column] | tuple[Column, ...], prefix: str) -> Iterator[Leaf]:
    for one in columns:
        if one.inside:
            yield from _walk(one.inside, f"{prefix}{one.name}.")
        else:
            yield Leaf(one.id, prefix + one.name, one.type)
