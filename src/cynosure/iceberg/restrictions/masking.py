"""Masks on the columns of a table, by name, made into one action for each field.

Columns are found by name without regard to case, in every schema that the table still has: a field that was
ever called so is masked, whatever it is called now, so that neither renaming it nor reading an old snapshot
shows it.

A maintainer must not break: a column that is to be masked and cannot be is an error, never left out.
"""

from collections.abc import Iterable, Mapping, Sequence

from cynosure.common.errors import BadInput
from cynosure.iceberg.restrictions.actions import Action, find_fitting, fits, strictest
from cynosure.iceberg.schema import Place, Schema
from cynosure.iceberg.types import StructType

Masks = Mapping[str, Action]
"""By column, as a policy names them."""


def find_places(name: str, schema: Schema) -> list[Place]:
    """The fields of a schema that have this dotted name."""
    wanted = name.lower()
    # All of them: a column may be called `a.b` beside a field `b` of a struct `a`.
    return [place for place in schema.places.values() if place.path.lower() == wanted]


def check_masks(masks: Masks, schema: Schema, *, field: str) -> dict[str, tuple[int, ...]]:
    """The fields that columns are in a schema; `BadInput` where one is missing or its action does not fit."""
    found: dict[str, tuple[int, ...]] = {}
    masked: set[int] = set()
    for name, action in masks.items():
        at = f"{field}.{name}"
        places = find_places(name, schema)
        if not places:
            raise BadInput("No such column", field=at, fix="Name a column of the table.", column=name)
        for place in places:
            _check_reachable(place, at)
            _check_fits(action, place, at)
        found[name] = tuple(place.field.id for place in places)
        masked.update(found[name])
    for name in masks:
        for place in find_places(name, schema):
            outer = next((each for each in place.around if each.id in masked), None)
            if outer is not None:
                raise BadInput(
                    "A column and a field inside it cannot both be masked",
                    field=f"{field}.{name}",
                    fix="Mask the outer one only.",
                    column=place.path,
                )
    return found


def mask_columns(
    masks: Iterable[Masks], current: Schema, older: Sequence[Schema], *, field: str
) -> dict[int, Action]:
    """The action for each field that has to be masked, by id. `BadInput` when one cannot be."""
    schemas = (current, *older)
    wanted: dict[int, list[Action]] = {}
    for each in masks:
        for name, action in each.items():
            for id_ in find_fields(name, schemas):
                wanted.setdefault(id_, []).append(action)
    chosen: dict[int, Action] = {}
    for id_, actions in wanted.items():
        place = _newest(id_, schemas)
        if any(outer.id in wanted for outer in place.around):
            # What is around it shows nothing of it: nothing but that is done to a struct.
            continue
        _check_reachable(place, f"{field}.{place.path}")
        fitting = find_fitting(
            strictest(tuple(actions)), place.field.type, is_required=place.field.is_required
        )
        if fitting is None:
            raise BadInput(
                "No mask fits the column",
                field=f"{field}.{place.path}",
                fix="Make the column optional, or mask the fields inside it.",
                column=place.path,
                type=str(place.field.type)[:200],
            )
        chosen[id_] = fitting
    return dict(sorted(chosen.items()))


def find_fields(name: str, schemas: Iterable[Schema]) -> set[int]:
    """Ids of all fields that have this name in one of the schemas."""
    return {place.field.id for schema in schemas for place in find_places(name, schema)}


def _newest(id_: int, schemas: Sequence[Schema]) -> Place:
    return next(schema.places[id_] for schema in schemas if id_ in schema.places)


def _check_reachable(place: Place, field: str) -> None:
    if not all(isinstance(each.type, StructType) for each in place.around):
        raise BadInput(
            "What is inside a list or map cannot be masked by itself",
            field=field,
            fix="Mask the whole list or map with replace-with-null.",
            column=place.path,
        )


def _check_fits(action: Action, place: Place, field: str) -> None:
    if fits(action, place.field.type, is_required=place.field.is_required):
        return
    raise BadInput(
        "The action does not fit the column",
        field=field,
        fix="Required columns cannot become null; mask-to-fixed-value fits all simple types.",
        column=place.path,
        type=str(place.field.type)[:200],
        action=action,
        is_required=place.field.is_required,
    )
