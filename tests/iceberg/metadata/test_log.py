import pytest

from cynosure.iceberg.metadata import with_previous_file
from tests.iceberg.samples import NOW_MS, encoded, new_table


def commit_files(table, count):
    removed = []
    for at in range(count):
        table, gone = with_previous_file(table, f"s3://b/{at}.json", NOW_MS + at)
        removed += gone
    return table, removed


def test_the_replaced_file_is_logged_with_its_time():
    table, removed = with_previous_file(new_table(), 's3://b/"0".json', NOW_MS)

    assert encoded(table)["metadata-log"] == [{"timestamp-ms": NOW_MS, "metadata-file": 's3://b/"0".json'}]
    assert removed == []


@pytest.mark.parametrize(
    ("setting", "kept"),
    [("3", 3), ("1", 1), ("0", 1), ("-5", 1), ("many", 100), (None, 100), ("1" * 30, 100)],
)
def test_the_log_keeps_as_many_files_as_the_table_says(setting, kept):
    properties = {} if setting is None else {"write.metadata.previous-versions-max": setting}

    table, removed = commit_files(new_table(properties=properties), 105)

    files = [entry["metadata-file"] for entry in encoded(table)["metadata-log"]]
    assert files == [f"s3://b/{at}.json" for at in range(105 - kept, 105)]
    assert removed == [f"s3://b/{at}.json" for at in range(105 - kept)]


def test_a_lowered_setting_removes_many_at_once():
    table, _ = commit_files(new_table(), 50)
    table = type(table)(
        **{name: getattr(table, name) for name in table.__struct_fields__}
        | {"properties": {"write.metadata.previous-versions-max": "2"}}
    )

    table, removed = with_previous_file(table, "s3://b/new.json", NOW_MS + 60)

    assert len(table.metadata_log) == 2
    assert removed == [f"s3://b/{at}.json" for at in range(49)]
