"""The words that a field of a body or query can be, for who sent another one.

Must not break: this runs for a request that is refused anyway, so whatever cannot be told is left out.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import inspect

_STEP: Final = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


def find_choices(of: Any, path: str) -> tuple[str, ...]:
    """The words at a path into a type, as decoders write it: `target.type`, `updates[...].action`."""
    places = [inspect.type_info(of)]
    for step in _STEP.findall(path):
        places = [below for place in _flatten(places) for below in _below(place, step)]
    found: list[str] = []
    for place in _flatten(places):
        if isinstance(place, inspect.LiteralType):
            found += map(str, place.values)
        elif isinstance(place, inspect.EnumType):
            found += (str(each.value) for each in place.cls)
    return tuple(sorted(set(found)))


def _flatten(places: list[inspect.Type]) -> Iterator[inspect.Type]:
    for place in places:
        if isinstance(place, inspect.UnionType):
            yield from _flatten(list(place.types))
        elif isinstance(place, inspect.Metadata):
            yield from _flatten([place.type])
        else:
            yield place


def _below(place: inspect.Type, step: str) -> Iterator[inspect.Type]:
    match place:
        case inspect.StructType():
            yield from (field.type for field in place.fields if field.encode_name == step)
            if place.tag_field == step:
                yield inspect.LiteralType((str(place.tag),))
        case inspect.CollectionType():
            yield place.item_type
        case inspect.DictType():
            yield place.value_type
        case _:
            return
