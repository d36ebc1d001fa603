import copy
import json
import pickle

import msgspec
import pytest

from cynosure.common.errors import Misconfigured, Unavailable
from cynosure.common.secrets import Secret, mask_url

SECRET = Secret("hunter2")


@pytest.mark.parametrize(
    "shown",
    [
        str(SECRET),
        repr(SECRET),
        f"{SECRET}",
        f"{SECRET!r:>20}",
        f"{SECRET:>20}",
        "%s" % SECRET,  # noqa: UP031
        str([SECRET]),
        str(Unavailable("No answer", key=SECRET)),
        json.dumps({"key": SECRET}, default=str),
    ],
)
def test_no_way_of_printing_shows_a_secret(shown):
    """I21."""
    assert "***" in shown
    assert "hunter2" not in shown


class Holder(msgspec.Struct):
    key: Secret


@pytest.mark.parametrize(
    "encode",
    [
        json.dumps,
        msgspec.json.encode,
        msgspec.msgpack.encode,
        msgspec.to_builtins,
        pickle.dumps,
        vars,
        iter,
        bytes,
        lambda secret: msgspec.json.encode(Holder(secret)),
        lambda secret: "" + secret,
    ],
)
def test_nothing_encodes_a_secret(encode):
    """I21."""
    with pytest.raises(TypeError):
        encode(SECRET)


def test_a_secret_in_a_copied_structure_stays_the_same_secret():
    assert copy.deepcopy({"key": SECRET})["key"] is SECRET
    assert copy.copy(SECRET) is SECRET


def test_secrets_are_equal_by_text_and_never_equal_to_text():
    assert Secret("a") == Secret("a")
    assert hash(Secret("a")) == hash(Secret("a"))
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"


def test_a_candidate_matches_only_when_it_is_the_whole_text():
    assert Secret("pässword").matches("pässword")
    assert not SECRET.matches("hunter")
    assert not SECRET.matches("\udcff")


def test_reveal_gives_the_text():
    assert SECRET.reveal() == "hunter2"


def test_a_secret_file_loses_only_its_line_end(tmp_path):
    path = tmp_path / "secret"
    path.write_text(" p w \n")

    assert Secret.from_file(path).reveal() == " p w "


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", None])
def test_a_secret_file_that_holds_none_is_refused_by_name(tmp_path, content):
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(Misconfigured) as refused:
        Secret.from_file(path)

    assert refused.value.details["path"] == str(path)
    assert refused.value.fix


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("postgresql://u:hunter2@db:5432/c", "postgresql://u:***@db:5432/c"),
        ("postgresql://u@db/c?password=hunter2&ssl=on", "postgresql://u@db/c?password=***&ssl=***"),
        ("postgresql://u:hun/ter2@db/c", "postgresql:***"),
        ("postgresql://u:hun#ter2@db/c", "postgresql:***"),
        ("postgresql://u:a@hun/ter2@db/c", "postgresql:***"),
        ("postgresql://[hunter2/c", "postgresql:***"),
        ("sqlite:data/store.db", "sqlite:data/store.db"),
        ("memory:", "memory:"),
    ],
)
def test_a_masked_url_shows_where_but_not_the_password(url, masked):
    assert mask_url(url) == masked
