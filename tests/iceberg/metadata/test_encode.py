import json

from cynosure.iceberg.metadata import encode_head, encode_metadata, parse_metadata
from tests.iceberg.samples import append, new_table, set_ref, update, with_history


def test_only_snapshots_that_refs_name_are_in_the_short_form():
    table = update(with_history(40), set_ref("old", 7, "tag"), set_ref("same", 7))

    short = json.loads(encode_metadata(table, snapshots="refs"))
    full = json.loads(encode_metadata(table))

    assert [one["snapshot-id"] for one in short.pop("snapshots")] == [7, 40]
    assert [one["snapshot-id"] for one in full.pop("snapshots")] == [*range(1, 41)]
    assert short == full


def test_a_head_that_was_kept_gives_the_same_document():
    table = with_history(3)

    assert encode_metadata(table, head=encode_head(table)) == encode_metadata(table)


def test_text_is_escaped():
    table = append(new_table(properties={'na"me\n': "ü\\"}), 1)
    table = update(table, set_ref('b"r\\anch', 1), {"action": "set-location", "location": 's3://b/"x"'})

    again = json.loads(encode_metadata(table))

    assert again["properties"]['na"me\n'] == "ü\\"
    assert again["location"] == 's3://b/"x"'
    assert again["refs"]['b"r\\anch']["snapshot-id"] == 1
    assert parse_metadata(encode_metadata(table)) == table


def test_a_table_without_anything_has_empty_lists():
    document = json.loads(encode_metadata(new_table()))

    for name in ("snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log"):
        assert document[name] == []
    assert document["refs"] == {}
    assert "encryption-keys" not in document
