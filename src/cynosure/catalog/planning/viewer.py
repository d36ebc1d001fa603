"""Who a plan is told to, and what it must not tell them.

Somebody who may not see all of a table and asks without a trusted engine reads no file of it. What is left of
a plan for them says how many files there are and where. It says nothing about values: no metrics, no choice
of files by columns that they do not see, and with a row filter no numbers of rows. Where a table is
partitioned by such a column, the paths of its files tell the values, so there is no plan at all.

A trusted engine that acts for them gets everything, and what it has to apply.

A maintainer must not break: a filter on a column that is masked chooses no files, whoever asks. To its user
the choice would tell what the column holds, and a mask may turn values that do not match into such that do.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import RestrictedByPolicy
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.restrictions.rule import Asked, tell
from cynosure.catalog.targets import TableTarget
from cynosure.iceberg.expressions.bound import (
    BoundExpression,
    BoundReference,
    BoundTerm,
    BoundTermComparison,
)
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import TRUE, Always, And, Not, Or
from cynosure.iceberg.manifests.columns import Constant
from cynosure.iceberg.manifests.content_file_json import BoundForm
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.transforms import VOID
from cynosure.persistence.commit import View


class Viewer(Struct, frozen=True):
    """How one caller sees one version of a table. Equal ones are told the same."""

    bound_form: BoundForm = BoundForm.TYPED
    """How their client wants bounds."""
    restrictions: bytes | None = None
    """What a reader has to apply, as JSON; None for somebody who may see all."""
    is_engine: bool = False
    """Whether a trusted engine asks, which applies it."""
    has_row_filter: bool = False
    masked: frozenset[int] = frozenset()
    """Columns that are not seen as they are."""

    @property
    def has_files(self) -> bool:
        """Whether they may read the files of the table."""
        return self.restrictions is None or self.is_engine

    def may_choose_by(self, expression: BoundExpression, schema: Schema) -> bool:
        """Whether files may be left out because of this filter."""
        if self.restrictions is None:
            return True
        if self.has_row_filter and not self.is_engine:
            return False
        return not any(is_inside(id_, self.masked, schema) for id_ in columns_of(expression))

    @property
    def may_count(self) -> bool:
        """Whether numbers of rows say how many of them there are to see."""
        return not self.has_row_filter

    def reduce(self, manifest: Manifest) -> Manifest:
        """The manifest without what they are not told."""
        if self.has_files:
            return manifest
        nothing: Constant[object] = Constant(None, len(manifest))
        # Keys open files; nothing else does for them.
        reduced = replace(manifest, key_metadata=nothing)
        if not self.may_count:
            # The first row id of the next file tells how many rows this one has.
            one = Constant(_ONE_ROW, len(manifest))
            reduced = replace(reduced, record_counts=one, first_row_ids=nothing, split_offsets=nothing)
        return reduced


_ONE_ROW: Final = 1
"""Not 0, which readers take for a file that need not be read."""


async def find_viewer(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    target: TableTarget,
    table: ManagedTable,
    bound_form: BoundForm,
) -> Viewer:
    """How the caller sees this version of the table, by what restricts them in this state.

    `RestrictedByPolicy` when that is not at all.
    """
    in_force = await catalog.restrictions.find(view, caller, target)
    asked = Asked(caller, ops.PLAN_SCAN, (target,))
    effective = None if in_force is None else catalog.restrictions.effective(in_force, asked, table)
    if in_force is None or effective is None:
        return Viewer(bound_form)
    viewer = Viewer(
        bound_form=bound_form,
        restrictions=tell(in_force, effective),
        is_engine=in_force.asking.is_trusted_engine,
        has_row_filter=effective.row_filter != TRUE,
        masked=frozenset(effective.projections),
    )
    if not viewer.has_files and _is_told_by_paths(viewer, table.metadata):
        raise RestrictedByPolicy(
            *asked,
            policies=tuple(dict.fromkeys(str(each.path) for each in in_force.policies)),
            reason="Read it through a trusted engine: the paths of its files tell values that are hidden.",
        )
    return viewer


def _is_told_by_paths(viewer: Viewer, metadata: TableMetadata) -> bool:
    """Whether files are grouped by something that is hidden. Old files keep their old groups."""
    sources = {
        source
        for spec in metadata.partition_specs
        for field in spec.value.fields
        if field.transform != VOID
        for source in field.sources
    }
    if viewer.has_row_filter:
        return bool(sources)
    schemas = [each.value for each in metadata.schemas]
    return any(is_inside(source, viewer.masked, schema) for source in sources for schema in schemas)


def is_inside(id_: int, some: frozenset[int], schema: Schema) -> bool:
    """Whether a column is one of these, inside one of them, or has one of them inside."""
    if id_ in some:
        return True
    place = schema.places.get(id_)
    if place is not None and any(around.id in some for around in place.around):
        return True
    inside = (schema.places.get(each) for each in some)
    return any(around.id == id_ for other in inside if other is not None for around in other.around)


def columns_of(expression: BoundExpression) -> frozenset[int]:
    """The columns that a filter asks about."""
    return fold(expression, _expand)


def _expand(node: BoundExpression) -> tuple[Sequence[BoundExpression], Join[frozenset[int]]]:
    match node:
        case And(left, right) | Or(left, right):
            return (left, right), lambda parts: parts[0] | parts[1]
        case Not(child):
            return (child,), lambda parts: parts[0]
        case Always():
            return (), lambda _: frozenset()
        case BoundTermComparison(_, one, other):
            ids = frozenset((*_ids(one), *_ids(other)))
        case _:
            ids = frozenset(_ids(node.term))
    return (), lambda _: ids


def _ids(term: BoundTerm) -> Iterator[int]:
    yield (term if isinstance(term, BoundReference) else term.source).id
