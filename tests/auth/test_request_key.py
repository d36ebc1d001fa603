"""What a key is for another server that is asked to do the same."""

import uuid

from cynosure.auth.request_key import Peppers, RequestKey
from cynosure.common.keyring import Keyring
from cynosure.testing.small_realm import KEYRING

OTHER = Keyring({"k2": b"x" * 32}, "k2")


def key(text: str = "one", scope: str = "ab" * 32, keyring: Keyring = KEYRING) -> RequestKey:
    return RequestKey(
        text,
        key_hash=scope,
        payload_hash="cd" * 32,
        describe_refusal=lambda _: None,
        peppers=Peppers(lambda: keyring),
    )


def test_a_derived_key_is_the_same_for_every_attempt_whatever_the_master_key() -> None:
    assert key().derive() == key().derive() == key(keyring=OTHER).derive()
    assert uuid.UUID(key().derive()).version == 4


def test_a_derived_key_is_bound_to_the_text_and_to_all_the_request_is() -> None:
    derived = {key().derive(), key("two").derive(), key(scope="ef" * 32).derive()}

    assert len(derived) == 3
    assert "one" not in derived
