import pytest

from cynosure.common.errors import BadInput, Contended
from cynosure.query.broker.failures import to_error
from cynosure.query.errors import NotReadable, OutOfMemory, QueryCancelled, ScanBroken
from cynosure.query.worker.failures import describe, for_spark
from cynosure.storage.errors import StorageRefused, StorageUnavailable


@pytest.mark.parametrize(
    ("error", "kind", "is_worth_retrying"),
    [
        (NotReadable("Not Parquet", path="s3://hidden/0"), NotReadable, False),
        # Elsewhere more memory may be free.
        (OutOfMemory("Too large"), OutOfMemory, True),
        (MemoryError("at 0xhidden"), OutOfMemory, True),
        (StorageUnavailable("Away", path="s3://hidden/0"), StorageUnavailable, True),
        # Credentials may have ended in the middle: the next attempt gets the newest.
        (StorageRefused("No", path="s3://hidden/0"), StorageRefused, True),
        (ValueError("hidden"), ScanBroken, True),
        # Ours, and constant, but of nothing that a user has to do with.
        (BadInput("Not for users: hidden", field="hidden", fix="hidden"), ScanBroken, True),
    ],
)
def test_an_error_arrives_as_what_it_was_without_what_it_held(error, kind, is_worth_retrying):
    failed = describe(error)
    arrived = to_error(failed, fragment_id="f0", attempts=1)
    assert type(arrived) is kind
    assert failed.is_worth_retrying is is_worth_retrying
    assert "hidden" not in str(arrived)


def test_a_kind_that_the_broker_does_not_know_arrives_as_the_nearest_that_it_does():
    arrived = to_error(describe(Contended("Busy")), fragment_id="f0", attempts=1)
    assert type(arrived).__name__ == "Unavailable"


def test_a_worker_cannot_make_up_errors_of_any_length():
    failed = describe(NotReadable("x" * 100_000, fix="y" * 100_000))
    assert len(str(to_error(failed, fragment_id="f0", attempts=1))) < 2_000


def test_spark_is_told_a_kind_and_a_fragment():
    assert str(for_spark("NotReadable", "f0")) == "A scan failed (kind='NotReadable', fragment='f0')"
    assert type(for_spark("QueryCancelled", "f0")) is QueryCancelled
