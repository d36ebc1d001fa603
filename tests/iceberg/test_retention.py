import pytest

from cynosure.iceberg.metadata import TableMetadata, parse_metadata
from cynosure.iceberg.retention import retained_snapshots
from tests.iceberg.samples import NOW_MS, encoded, new_table, to_json

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def table_of(
    snapshots: dict[int, tuple[int | None, int]], refs: dict[str, dict], **properties: str
) -> TableMetadata:
    """A table of snapshots given as id: (parent, age in ms)."""
    document = encoded(new_table(properties=properties))
    document |= {
        "last-sequence-number": 100,
        "snapshots": [
            {
                "snapshot-id": id_,
                "timestamp-ms": NOW_MS - age_ms,
                "sequence-number": 1,
                "manifest-list": "x",
                **({} if parent is None else {"parent-snapshot-id": parent}),
            }
            for id_, (parent, age_ms) in snapshots.items()
        ],
        "refs": {name: {"type": "branch", **ref} for name, ref in refs.items()},
        "current-snapshot-id": refs["main"]["snapshot-id"] if "main" in refs else -1,
    }
    return parse_metadata(to_json(document))


CHAIN = {id_: (id_ - 1 if id_ > 1 else None, (6 - id_) * 2 * DAY_MS) for id_ in range(1, 6)}
"""Snapshots 1 to 5 on one line, 10, 8, 6, 4 and 2 days old."""


@pytest.mark.parametrize(
    ("properties", "ref", "kept"),
    [
        ({}, {}, {4, 5}),
        ({"history.expire.max-snapshot-age-ms": str(7 * DAY_MS)}, {}, {3, 4, 5}),
        ({"history.expire.max-snapshot-age-ms": "1"}, {}, {5}),
        ({"history.expire.max-snapshot-age-ms": "soon"}, {}, {4, 5}),
        ({"history.expire.min-snapshots-to-keep": "4"}, {}, {2, 3, 4, 5}),
        ({"history.expire.min-snapshots-to-keep": "0"}, {}, {4, 5}),
        ({}, {"min-snapshots-to-keep": 3}, {3, 4, 5}),
        ({}, {"max-snapshot-age-ms": 3 * DAY_MS}, {5}),
        ({"history.expire.max-snapshot-age-ms": "1"}, {"max-snapshot-age-ms": 9 * DAY_MS}, {2, 3, 4, 5}),
        ({"history.expire.min-snapshots-to-keep": "5"}, {"min-snapshots-to-keep": 1}, {4, 5}),
        ({"history.expire.max-ref-age-ms": "1"}, {"max-ref-age-ms": 1}, {4, 5}),
    ],
)
def test_main_keeps_snapshots_by_number_and_age(properties, ref, kept):
    table = table_of(CHAIN, {"main": {"snapshot-id": 5, **ref}}, **properties)

    retained = retained_snapshots(table, NOW_MS)

    assert retained.snapshot_ids == kept
    assert retained.expired_snapshot_ids == tuple(id_ for id_ in CHAIN if id_ not in kept)
    assert retained.expired_refs == ()


def test_a_tag_keeps_exactly_its_snapshot():
    table = table_of(CHAIN, {"main": {"snapshot-id": 5}, "v1": {"type": "tag", "snapshot-id": 2}})

    assert retained_snapshots(table, NOW_MS).snapshot_ids == {2, 4, 5}


def test_old_refs_go_and_then_do_not_keep_anything():
    refs = {
        "main": {"snapshot-id": 5},
        "v1": {"type": "tag", "snapshot-id": 1, "max-ref-age-ms": DAY_MS},
        "v2": {"type": "tag", "snapshot-id": 2},
        "dev": {"snapshot-id": 3},
    }

    table = table_of(CHAIN, refs, **{"history.expire.max-ref-age-ms": str(7 * DAY_MS)})
    retained = retained_snapshots(table, NOW_MS)

    assert retained.expired_refs == ("v1", "v2")
    assert retained.snapshot_ids == {3, 4, 5}


def test_a_branch_keeps_its_own_line():
    snapshots = {**CHAIN, 21: (2, 9 * DAY_MS), 22: (21, 8 * DAY_MS)}

    table = table_of(
        snapshots, {"main": {"snapshot-id": 5}, "dev": {"snapshot-id": 22, "min-snapshots-to-keep": 3}}
    )

    assert retained_snapshots(table, NOW_MS).snapshot_ids == {4, 5, 22, 21, 2}


def test_the_first_snapshot_too_old_ends_a_branch_even_if_older_ones_look_young():
    snapshots = {1: (None, 1), 2: (1, 9 * DAY_MS), 3: (2, 1)}

    assert retained_snapshots(table_of(snapshots, {"main": {"snapshot-id": 3}}), NOW_MS).snapshot_ids == {3}


def test_snapshots_that_no_branch_leads_to_go_by_age():
    snapshots = {**CHAIN, 30: (5, HOUR_MS), 31: (4, 9 * DAY_MS)}

    retained = retained_snapshots(table_of(snapshots, {"main": {"snapshot-id": 5}}), NOW_MS)

    assert retained.snapshot_ids == {4, 5, 30}


def test_a_line_that_lost_its_beginning_ends_there():
    snapshots = {4: (3, HOUR_MS), 5: (4, 1)}

    assert retained_snapshots(table_of(snapshots, {"main": {"snapshot-id": 5}}), NOW_MS).snapshot_ids == {
        4,
        5,
    }


def test_a_circle_of_parents_ends():
    snapshots = {1: (2, HOUR_MS), 2: (1, HOUR_MS)}

    assert retained_snapshots(table_of(snapshots, {"main": {"snapshot-id": 2}}), NOW_MS).snapshot_ids == {
        1,
        2,
    }


def test_an_empty_table_keeps_nothing():
    retained = retained_snapshots(new_table(), NOW_MS)

    assert (retained.snapshot_ids, retained.expired_snapshot_ids) == (frozenset(), ())
