"""What is stored of secrets: enough to recognise them, nothing to find them out, and no time that tells."""

import hmac

import pytest
from msgspec import structs

from cynosure.auth.entities import StoredSecret
from cynosure.auth.secret_hash import MAX_SECRETS, SecretHasher
from cynosure.common.errors import Misconfigured
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret

OLD, NEW = b"o" * 32, b"n" * 32


def hasher_with(keys: dict[str, bytes], primary: str) -> SecretHasher:
    return SecretHasher(lambda: Keyring(keys, primary))


def test_a_secret_is_recognised_and_no_other_is() -> None:
    hasher = hasher_with({"k1": OLD}, "k1")
    stored = hasher.hash(Secret("s3cr3t"), 4)

    assert hasher.find_match(Secret("s3cr3t"), (stored,))
    assert not any(
        hasher.find_match(Secret(text), (stored,)) for text in ("", "s3cr3", "s3cr3tt", "S3CR3T", "\ud800")
    )
    assert (stored.generation, stored.key.partition("/")[0]) == (4, "k1")


def test_the_same_secret_is_stored_differently_each_time_and_never_as_it_is() -> None:
    hasher = hasher_with({"k1": OLD}, "k1")

    one, two = hasher.hash(Secret("correct horse"), 1), hasher.hash(Secret("correct horse"), 1)

    assert one.salt != two.salt
    assert one.digest != two.digest
    assert b"correct horse" not in repr(one).encode() + one.digest + one.salt


def test_without_the_master_key_a_guess_cannot_be_checked() -> None:
    """A stolen store holds salt and digest; also the right guess proves nothing without the pepper."""
    stored = hasher_with({"k1": OLD}, "k1").hash(Secret("123456"), 1)
    thief = hasher_with({"k1": NEW}, "k1")

    with pytest.raises(Misconfigured, match="another master key"):
        thief.find_match(Secret("123456"), (stored,))
    mine = structs.replace(stored, key=thief.hash(Secret("x"), 1).key)
    assert not thief.find_match(Secret("123456"), (mine,))
    assert hmac.digest(b"", stored.salt + b"123456", "sha256") != stored.digest
    assert hmac.digest(OLD, stored.salt + b"123456", "sha256") != stored.digest


def test_secrets_of_an_older_master_key_stay_good_while_it_is_in_the_ring() -> None:
    stored = hasher_with({"k1": OLD}, "k1").hash(Secret("s3cr3t"), 1)

    rotated = hasher_with({"k1": OLD, "k2": NEW}, "k2")
    assert rotated.find_match(Secret("s3cr3t"), (stored,))
    assert rotated.hash(Secret("s3cr3t"), 2).key.startswith("k2/")

    with pytest.raises(Misconfigured) as refused:
        hasher_with({"k2": NEW}, "k2").find_match(Secret("s3cr3t"), (stored,))
    assert refused.value.details == {"key_id": "k1"}


@pytest.mark.parametrize("secret", ["right", "wrong"])
@pytest.mark.parametrize("known", range(MAX_SECRETS + 1))
def test_the_work_is_the_same_for_every_client_known_or_not(known: int, secret: str) -> None:
    """I35."""
    hasher = hasher_with({"k1": OLD}, "k1")
    stored = [hasher.hash(Secret("right"), 9 - at) for at in range(known)]
    before = hasher.digests

    found = hasher.find_match(Secret(secret), stored)

    assert hasher.digests - before == MAX_SECRETS
    assert (found is not None) == (secret == "right" and known > 0)


def test_what_stands_in_for_a_missing_secret_matches_nothing() -> None:
    hasher = hasher_with({"k1": OLD}, "k1")
    key = hasher.hash(Secret("x"), 1).key
    nothing = StoredSecret(generation=0, salt=bytes(16), digest=bytes(32), key=key)

    assert hasher.find_match(Secret(""), ()) is None
    assert hasher.find_match(Secret(""), (nothing,)) is None
