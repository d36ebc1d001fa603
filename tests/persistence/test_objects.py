from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cynosure.common.errors import CorruptObject, Damaged, Misconfigured, NewerFormat, UnknownType
from cynosure.persistence.objects import (
    ObjectType,
    ObjRef,
    Stored,
    TypeRegistry,
    open_envelope,
    seal,
    struct_type,
    unseal,
)
from cynosure.persistence.spi import CatalogId, ObjId, ObjKey, RealmId


class Shape(Stored, frozen=True, kw_only=True):
    name: str
    sides: int = 0
    related: tuple[ObjRef, ...] = ()


class Colour(msgspec.Struct, frozen=True):
    hue: int


class NewColour(msgspec.Struct, frozen=True):
    hue: int
    alpha: float = 1.0


class Painted(Stored, frozen=True, kw_only=True):
    """Version 1 of a type."""

    title: str = msgspec.field(name="t", default="")
    colour: Colour = Colour(0)


class NewPainted(Stored, frozen=True, kw_only=True):
    """Version 3 of the same type, in the middle of a rolling upgrade."""

    title: str = msgspec.field(name="t", default="")
    colour: NewColour = NewColour(0)
    price: float = 0.0
    """As a float and as an integer it looks different in msgpack; it must come back as it was."""
    frame: ObjRef | None = None
    tags: dict[str, list[int]] = msgspec.field(default_factory=dict)


def refs_of(shape: Shape) -> tuple[ObjRef, ...]:
    return shape.related


def frame_of(painted: NewPainted) -> tuple[ObjRef, ...]:
    return () if painted.frame is None else (painted.frame,)


SHAPE = struct_type("shape", Shape, refs=refs_of)
PAINTED_V1 = struct_type("painted", Painted)
PAINTED_V2 = struct_type("painted", Painted, version=2)
PAINTED_V3 = struct_type("painted", NewPainted, version=3, refs=frame_of)
KEY = ObjKey(RealmId("default"), CatalogId("c1"), "shape", ObjId(1 << 40))

obj_refs = st.builds(ObjRef, st.integers(0, (1 << 63) - 1).map(ObjId), st.sampled_from(["a", "b", "node-x"]))
shapes = st.builds(
    Shape,
    name=st.text(max_size=3000),
    sides=st.integers(-(1 << 63), (1 << 63) - 1),
    related=st.lists(obj_refs, max_size=8).map(tuple),
)


# --- envelope ---------------------------------------------------------------------------------------


@given(shape=shapes)
def test_what_is_sealed_opens_as_it_was(shape: Shape) -> None:
    blob = seal(SHAPE, shape)

    assert unseal(SHAPE, KEY, blob)[0] == shape


@given(shape=shapes)
def test_references_are_readable_without_the_type(shape: Shape) -> None:
    envelope = open_envelope(KEY, seal(SHAPE, shape))

    assert sorted(envelope.refs) == sorted(shape.related)


@pytest.mark.parametrize("size", [10, 400, 5000])
def test_long_payloads_are_compressed_unless_the_type_says_no(size: int) -> None:
    loose = struct_type("shape", Shape, is_compressed=False)
    shape = Shape(name="x" * size)

    assert len(seal(loose, shape)) > size
    assert (len(seal(SHAPE, shape)) < len(seal(loose, shape))) == (size > 512)


def test_golden_envelopes(golden: Any) -> None:
    plain = Shape(
        name="triangle", sides=3, related=(ObjRef(ObjId(7), "shape"), ObjRef(ObjId(1 << 60), "commit"))
    )

    blob = golden("envelope-v1-plain.bin", seal(SHAPE, plain))

    assert blob[:4] == b"\x01\x00\x00\x01"
    assert unseal(SHAPE, KEY, blob)[0] == plain


def test_golden_compressed_envelope_is_readable() -> None:
    # Only readable: another zlib may compress to other bytes, and that is no change of the format.

    blob = (Path(__file__).parents[1] / "golden" / "envelope-v1-zlib.bin").read_bytes()

    assert blob[1] == 1
    assert unseal(SHAPE, KEY, blob)[0] == Shape(name="x" * 2000, sides=4)


# --- damage -----------------------------------------------------------------------------------------


@given(shape=shapes, data=st.data())
def test_every_truncation_is_damage(shape: Shape, data: st.DataObject) -> None:
    blob = seal(SHAPE, shape)
    cut = data.draw(st.integers(0, len(blob) - 1))

    with pytest.raises(CorruptObject) as found:
        unseal(SHAPE, KEY, blob[:cut])

    assert found.value.details["id"] == KEY.id
    assert "cynosure store check" in found.value.fix


@given(shape=shapes, data=st.data())
def test_every_flipped_bit_is_damage_also_in_the_header(shape: Shape, data: st.DataObject) -> None:
    blob = bytearray(seal(SHAPE, shape))
    bit = data.draw(st.one_of(st.integers(0, 95), st.integers(0, 8 * len(blob) - 1)))
    blob[bit // 8] ^= 1 << bit % 8

    with pytest.raises(Damaged):
        open_envelope(KEY, bytes(blob))


@given(blob=st.binary(max_size=200))
def test_any_other_bytes_are_damage_and_nothing_worse(blob: bytes) -> None:
    with pytest.raises(Damaged):
        unseal(SHAPE, KEY, blob)


def test_a_newer_envelope_is_called_newer_not_damaged() -> None:
    blob = bytearray(seal(SHAPE, Shape(name="a")))
    blob[0] = 2

    with pytest.raises(NewerFormat) as found:
        unseal(SHAPE, KEY, bytes(blob))

    assert found.value.details["format"] == 2
    assert found.value.details["reads_up_to"] == 1


def test_a_payload_of_another_type_is_damage() -> None:
    other = struct_type("other", Painted)

    with pytest.raises(CorruptObject, match="does not decode"):
        unseal(SHAPE, KEY, seal(other, Painted()))


def test_a_newer_payload_that_cannot_be_read_is_called_newer_not_damaged() -> None:
    class Incompatible(Stored, frozen=True, kw_only=True):
        name: list[str]

    newer = struct_type("shape", Incompatible, version=2)

    with pytest.raises(NewerFormat) as found:
        unseal(SHAPE, KEY, seal(newer, Incompatible(name=["a"])))

    assert found.value.details["version"] == 2


# --- versions side by side --------------------------------------------------------------------------


NEW = NewPainted(
    title="dawn",
    colour=NewColour(hue=20, alpha=0.5),
    price=2.0,
    frame=ObjRef(ObjId(99), "frame"),
    tags={"b": [1, 2], "a": []},
)


def test_a_newer_reader_gives_new_fields_their_defaults() -> None:
    read, _ = unseal(PAINTED_V3, KEY, seal(PAINTED_V1, Painted(title="dawn")))

    assert read == NewPainted(title="dawn")


def test_unknown_fields_survive_an_older_writer_byte_for_byte() -> None:
    old, _ = unseal(PAINTED_V1, KEY, seal(PAINTED_V3, NEW))

    rewritten = seal(PAINTED_V1, replace(old, title="dusk"))

    before = msgspec.msgpack.decode(
        open_envelope(KEY, seal(PAINTED_V3, NEW)).payload, type=dict[str, msgspec.Raw]
    )
    after = msgspec.msgpack.decode(open_envelope(KEY, rewritten).payload, type=dict[str, msgspec.Raw])
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"t"}
    assert before.keys() == after.keys()
    assert unseal(PAINTED_V3, KEY, rewritten)[0] == replace(NEW, title="dusk")


def test_unknown_fields_survive_many_rewrites_by_writers_of_several_ages() -> None:
    blob = seal(PAINTED_V3, NEW)

    for number, old_type in enumerate([PAINTED_V1, PAINTED_V1, PAINTED_V2, PAINTED_V1, PAINTED_V2]):
        old, _ = unseal(old_type, KEY, blob)
        blob = seal(old_type, replace(old, title=f"dusk {number}"))

    assert unseal(PAINTED_V3, KEY, blob)[0] == replace(NEW, title="dusk 4")


def test_objects_that_only_unknown_fields_refer_to_stay_referenced() -> None:
    old, _ = unseal(PAINTED_V1, KEY, seal(PAINTED_V3, NEW))

    rewritten = seal(PAINTED_V1, replace(old, title="dusk"))

    assert open_envelope(KEY, rewritten).refs == (ObjRef(ObjId(99), "frame"),)


def test_unknown_fields_within_a_field_survive_unless_it_is_replaced() -> None:
    old, _ = unseal(PAINTED_V1, KEY, seal(PAINTED_V3, NEW))

    kept, _ = unseal(PAINTED_V3, KEY, seal(PAINTED_V1, replace(old, title="dusk")))
    replaced, _ = unseal(PAINTED_V3, KEY, seal(PAINTED_V1, replace(old, colour=Colour(hue=3))))

    assert kept.colour == NewColour(hue=20, alpha=0.5)
    assert replaced.colour == NewColour(hue=3)
    assert replaced.price == 2.0


def test_a_newer_value_without_news_is_an_ordinary_value() -> None:
    plain = seal(PAINTED_V2, Painted(title="dawn"))

    assert unseal(PAINTED_V1, KEY, plain)[0] == Painted(title="dawn")


# --- types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a#1", "größe"])
def test_a_type_needs_a_plain_name(name: str) -> None:
    with pytest.raises(Misconfigured):
        struct_type(name, Shape)


def test_two_definitions_of_one_type_are_refused_at_start() -> None:
    with pytest.raises(Misconfigured) as refused:
        TypeRegistry([SHAPE, struct_type("shape", Painted)])

    assert refused.value.details == {"name": "shape"}


def test_an_unknown_type_is_named_and_parts_count_as_their_whole() -> None:
    registry = TypeRegistry([SHAPE, SHAPE])

    assert registry.get("shape") is SHAPE
    assert registry.get("shape#12") is SHAPE
    assert registry.find("sphere") is None
    with pytest.raises(UnknownType, match="Install the package") as refused:
        registry.get("sphere")
    assert refused.value.details == {"type": "sphere"}


@given(ref=obj_refs)
def test_a_reference_as_an_index_value_reads_back(ref: ObjRef) -> None:
    assert ObjRef.unpack(ref.pack()) == ref


def test_a_codec_that_reports_damage_is_reported_with_the_objects_name() -> None:
    class Picky:
        def encode(self, value: bytes) -> bytes:
            return value

        def decode(self, payload: bytes, version: int) -> bytes:
            raise ValueError("no")

        def weigh(self, value: bytes, payload_bytes: int) -> int:
            return payload_bytes

    picky: ObjectType[bytes] = ObjectType(name="picky", codec=Picky())

    with pytest.raises(CorruptObject) as found:
        unseal(picky, KEY, seal(picky, b"value"))

    assert found.value.details["realm"] == "default"
