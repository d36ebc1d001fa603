import itertools
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import CorruptObject, Misconfigured, NewerFormat
from cynosure.common.keyring import Keyring, sealed_key_id

K1, K2 = bytes(range(32)), bytes(range(32, 64))
CONTEXT = ("default", "connection", "42")


def counting_bytes():
    numbers = itertools.count()
    return lambda size: bytes([next(numbers)]) * size


@given(plaintext=st.binary(max_size=500), context=st.lists(st.text(max_size=10), max_size=4))
def test_what_was_sealed_opens_in_its_context(plaintext, context):
    ring = Keyring({"k1": K1}, "k1")
    sealed = ring.encrypt(plaintext, context)

    assert ring.decrypt(sealed, context) == plaintext


def test_the_same_value_is_sealed_differently_each_time():
    ring = Keyring({"k1": K1}, "k1")

    assert ring.encrypt(b"value", CONTEXT) != ring.encrypt(b"value", CONTEXT)


@pytest.mark.parametrize(
    "context",
    [(), ("default", "connection"), ("default", "connection", "43"), ("defaultconnection", "", "42")],
)
def test_a_value_moved_to_another_place_does_not_open(context):
    ring = Keyring({"k1": K1}, "k1")

    with pytest.raises(CorruptObject):
        ring.decrypt(ring.encrypt(b"value", CONTEXT), context)


def test_every_changed_byte_is_noticed():
    ring = Keyring({"k1": K1}, "k1")
    sealed = ring.encrypt(b"value", CONTEXT)

    for position in range(len(sealed)):
        damaged = bytearray(sealed)
        damaged[position] ^= 1
        with pytest.raises((CorruptObject, NewerFormat, Misconfigured)) as refused:
            ring.decrypt(bytes(damaged), CONTEXT)
        assert "value" not in refused.value.details.values()


def test_every_truncation_is_noticed():
    ring = Keyring({"k1": K1}, "k1")
    sealed = ring.encrypt(b"value", CONTEXT)

    for length in range(len(sealed)):
        with pytest.raises(CorruptObject):
            ring.decrypt(sealed[:length], CONTEXT)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_our_errors(junk):
    with pytest.raises((CorruptObject, NewerFormat, Misconfigured)):
        Keyring({"k1": K1}, "k1").decrypt(b"CK" + junk, CONTEXT)


def test_after_a_rotation_old_values_open_and_new_ones_use_the_new_key():
    old = Keyring({"k1": K1}, "k1")
    sealed = old.encrypt(b"value", CONTEXT)
    rotated = Keyring({"k1": K1, "k2": K2}, "k2")

    assert rotated.decrypt(sealed, CONTEXT) == b"value"
    assert sealed_key_id(rotated.encrypt(b"value", CONTEXT)) == "k2"


def test_a_rewrapped_value_no_longer_needs_the_old_key():
    sealed = Keyring({"k1": K1}, "k1").encrypt(b"value", CONTEXT)
    rewrapped = Keyring({"k1": K1, "k2": K2}, "k2").rewrap(sealed, CONTEXT)

    assert sealed_key_id(rewrapped) == "k2"
    assert Keyring({"k2": K2}, "k2").decrypt(rewrapped, CONTEXT) == b"value"


def test_rewrap_leaves_what_is_under_the_primary_key_alone():
    ring = Keyring({"k1": K1}, "k1")
    sealed = ring.encrypt(b"value", CONTEXT)

    assert ring.rewrap(sealed, CONTEXT) == sealed


def test_a_missing_master_key_is_named():
    sealed = Keyring({"k1": K1}, "k1").encrypt(b"value", CONTEXT)

    with pytest.raises(Misconfigured) as refused:
        Keyring({"k2": K2}, "k2").decrypt(sealed, CONTEXT)

    assert refused.value.details["key_id"] == "k1"


def test_a_wrong_key_under_the_right_id_is_named_and_gives_no_plaintext():
    sealed = Keyring({"k1": K1}, "k1").encrypt(b"value", CONTEXT)

    for attempt in (Keyring({"k1": K2}, "k1").decrypt, Keyring({"k1": K2, "k2": K1}, "k2").rewrap):
        with pytest.raises(CorruptObject) as refused:
            attempt(sealed, CONTEXT)
        assert refused.value.details["key_id"] == "k1"


def test_a_newer_format_is_told_from_damage():
    sealed = bytearray(Keyring({"k1": K1}, "k1").encrypt(b"value", CONTEXT))
    sealed[2] = 2

    with pytest.raises(NewerFormat):
        Keyring({"k1": K1}, "k1").decrypt(bytes(sealed), CONTEXT)


@pytest.mark.parametrize(
    ("keys", "primary"),
    [({"k1": b"short"}, "k1"), ({"": K1}, ""), ({"k" * 65: K1}, "k" * 65), ({"k1": K1}, "k2"), ({}, "k1")],
)
def test_an_unusable_keyring_is_refused(keys, primary):
    with pytest.raises(Misconfigured):
        Keyring(keys, primary)


def test_a_keyring_prints_no_key():
    shown = repr(vars(Keyring({"k1": K1}, "k1")))

    assert repr(K1) not in shown
    assert K1.hex() not in shown


def test_the_sealed_format_is_stable():
    ring = Keyring({"k1": K1}, "k1", counting_bytes())
    golden = (
        "434b01026b310202020202020202020202029b2819bbb9d9315bcb85a2f83379da131ce9af6c945478f1425ed103776b"
        "49c2591575776d42fa168c0e44b63d2133af0101010101010101010101010321af1f1fd5df46013f696a4fefd69da66af31093"
    )

    assert ring.encrypt(b"value", CONTEXT).hex() == golden
    assert Keyring({"k1": K1}, "k1", os.urandom).decrypt(bytes.fromhex(golden), CONTEXT) == b"value"


def test_derived_keys_are_always_the_same_and_differ_by_purpose_and_master_key():
    ring = Keyring({"k1": K1, "k2": K2}, "k2")

    derived = ring.derive("client-secrets", "k1")

    assert derived == Keyring({"k1": K1}, "k1").derive("client-secrets", "k1")
    assert len({derived, ring.derive("other", "k1"), ring.derive("client-secrets", "k2"), K1, K2}) == 5
    # Stored digests depend on it: it never changes.
    assert derived.hex() == "2746ee421fef72a02011b995b5c1542e6527eaebf528aa6fba0594a4123c2c4f"
    with pytest.raises(Misconfigured) as refused:
        ring.derive("client-secrets", "k3")
    assert refused.value.details == {"key_id": "k3"}
