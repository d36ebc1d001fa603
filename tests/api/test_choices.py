"""Who sends a word that is none of a field's is told those that are."""

from enum import Enum
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from cynosure.api.choices import find_choices
from cynosure.api.decode import BodyDecoder, QueryDecoder
from cynosure.common.errors import BadInput


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Cat(Struct, tag="cat", tag_field="kind"):
    fur: Colour


class Fish(Struct, tag="fish", tag_field="kind"):
    pass


class Zoo(Struct, rename="kebab"):
    main_pet: Cat | Fish | None = None
    pets: list[Cat | Fish] = []
    moods: dict[str, Annotated[Literal["good", "bad"], Meta(title="Mood")] | None] = {}
    size: int = 0


@pytest.mark.parametrize(
    ("body", "field", "fix"),
    [
        ({"main-pet": {"kind": "dog"}}, "main-pet.kind", "Choose one of cat, fish."),
        ({"pets": [{"kind": "cat", "fur": "green"}]}, "pets[0].fur", "Choose one of blue, red."),
        ({"moods": {"ann": "so so"}}, "moods[...]", "Choose one of bad, good."),
        ({"size": "large"}, "size", "Correct this field; the shapes are in /openapi.json."),
    ],
)
def test_a_wrong_word_in_a_body_is_answered_with_the_right_ones(
    body: dict[str, object], field: str, fix: str
) -> None:
    with pytest.raises(BadInput) as caught:
        BodyDecoder(Zoo).decode(msgspec.json.encode(body))

    assert (caught.value.details["field"], caught.value.fix) == (field, fix)


def test_a_wrong_word_in_a_query_is_answered_with_the_right_ones() -> None:
    class Query(Struct):
        show: Literal["all", "refs"] = "all"

    with pytest.raises(BadInput) as caught:
        QueryDecoder(Query).decode(b"show=none")

    assert caught.value.fix == "Choose one of all, refs."


@pytest.mark.parametrize("path", ["", "nothing", "size.deeper", "pets[0].nothing", "main-pet"])
def test_where_there_are_no_words_none_are_told(path: str) -> None:
    assert find_choices(Zoo, path) == ()
