"""Session policies, judged by a small reader of Amazon's policy language that was written apart from them."""

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.storage.access.ports import Scope
from cynosure.storage.access.s3.session_policy import LONGEST_CHARACTERS, Dialect, session_policy
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location

AMAZON = Dialect(has_escapes=True, has_roles=True)
OTHERS = Dialect()
READS = ("s3:GetObject", "s3:GetObjectVersion")
WRITES = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


# --- the reader -----------------------------------------------------------------------------------------


def matches(pattern: str, text: str, *, has_escapes: bool) -> bool:
    found = re.split(r"(\$\{[^}]*\}|[*?])", pattern)
    parts = []
    for part in found:
        if part in ("${*}", "${?}", "${$}") and has_escapes:
            parts.append(re.escape(part[2]))
        elif part.startswith("${"):
            raise AssertionError(f"a variable: {part}")
        else:
            parts.append({"*": ".*", "?": "."}.get(part, re.escape(part)))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


def is_allowed(
    document: str, action: str, bucket: str, key: str = "", prefix: str | None = None, **how: bool
):
    how = {"has_escapes": True, **how}
    arn = f"arn:aws:s3:::{bucket}" + (f"/{key}" if key else "")
    allowed = False
    for statement in json.loads(document)["Statement"]:
        hits = any(matches(each, action, **how) for each in as_list(statement["Action"])) and any(
            matches(each, arn, **how) for each in as_list(statement["Resource"])
        )
        condition = statement.get("Condition")
        if hits and condition is not None:
            assert list(condition) == ["StringLike"]
            wanted = as_list(condition["StringLike"]["s3:prefix"])
            hits = prefix is not None and any(matches(each, prefix, **how) for each in wanted)
        if hits and statement["Effect"] == "Deny":
            return False
        allowed = allowed or hits
    return allowed


# --- what is allowed, and nothing else ------------------------------------------------------------------

PIECES = [
    "a",
    "b",
    "*",
    "$",
    "${",
    "{",
    "}",
    "${x}",
    "${*}",
    "${aws:username}",
    '"',
    "/",
    "%2f",
    ",",
    ":",
    ".",
    "ü",
]
NAMES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)


@st.composite
def locations(draw: st.DrawFn) -> Location:
    bucket = draw(st.sampled_from(["bkt", "bkt2", "other"]))
    path = "/".join(draw(st.lists(NAMES, max_size=3)))
    try:
        return Location.parse(f"s3://{bucket}/{path}".removesuffix("/"))
    except BadInput:
        assume(False)
        raise


@given(
    scope=st.builds(Scope, st.lists(locations(), max_size=3).map(tuple), st.booleans()),
    bucket=st.sampled_from(["bkt", "bkt2", "other"]),
    tail=st.text(alphabet="ab*${}/x", max_size=4),
    data=st.data(),
)
def test_exactly_what_is_below_the_locations_is_opened(
    scope: Scope, bucket: str, tail: str, data: st.DataObject
):
    text = session_policy(scope, AMAZON)
    # Near misses: a location's own path with something after it, with and without the slash.
    near = ["/".join(each.segments) for each in scope.locations] or [""]
    key = data.draw(st.sampled_from(near)) + data.draw(st.sampled_from(["", "/"])) + tail
    assume(key)

    def is_below(path: str) -> bool:
        return any(
            each.authority == bucket and path.startswith("".join(f"{name}/" for name in each.segments))
            for each in scope.locations
        )

    for action in READS:
        assert is_allowed(text, action, bucket, key) == is_below(key)
    for action in WRITES:
        assert is_allowed(text, action, bucket, key) == (scope.is_writable and is_below(key))
    assert is_allowed(text, "s3:ListBucket", bucket, prefix=key) == is_below(key)
    for action in (
        "s3:PutBucketPolicy",
        "s3:PutObjectAcl",
        "s3:ListAllMyBuckets",
        "sts:AssumeRole",
        "iam:PassRole",
    ):
        assert not is_allowed(text, action, bucket, key)


@given(location=locations())
def test_where_names_cannot_be_escaped_they_are_plain_or_refused(location: Location):
    path = "/".join(location.segments)
    is_special = "*" in path or "?" in path or "${" in path

    scope = Scope((location,), is_writable=False)
    if is_special:
        with pytest.raises(StorageRefused, match=re.escape(repr(location.text))):
            session_policy(scope, OTHERS)
        return

    text = session_policy(scope, OTHERS)

    key = f"{path}/x".removeprefix("/")
    assert is_allowed(text, "s3:GetObject", location.authority, key, has_escapes=False)


def test_a_request_for_a_whole_bucket_is_allowed_only_to_whom_it_is_given():
    whole = session_policy(Scope((Location.parse("s3://bkt"),), is_writable=False), AMAZON)
    part = session_policy(Scope((Location.parse("s3://bkt/a"),), is_writable=False), AMAZON)

    assert is_allowed(whole, "s3:ListBucket", "bkt")
    assert not is_allowed(part, "s3:ListBucket", "bkt")
    assert is_allowed(part, "s3:GetBucketLocation", "bkt")
    assert not is_allowed(whole, "s3:GetBucketLocation", "other")


def test_a_scope_without_locations_denies_everything():
    text = session_policy(Scope((), is_writable=True), OTHERS)

    assert json.loads(text)["Statement"] == [{"Effect": "Deny", "Action": "*", "Resource": "*"}]


# --- the document itself --------------------------------------------------------------------------------


def test_the_document_is_small_and_in_ascii():
    scope = Scope((Location.parse("s3://bkt/warehouse/日本/orders-0a1b2c3d4e5f"),), is_writable=True)

    text = session_policy(scope, OTHERS)

    assert text.isascii()
    assert "\\u65e5" in text
    assert len(text) < 600
    assert " " not in text


def test_what_does_not_fit_is_refused_rather_than_cut():
    places = tuple(Location.parse(f"s3://bkt/{'long-directory-name/' * 3}{number}") for number in range(30))

    with pytest.raises(StorageRefused) as refused:
        session_policy(Scope(places, is_writable=True), OTHERS)

    assert refused.value.details["characters"] > LONGEST_CHARACTERS
    assert refused.value.fix
    assert len(session_policy(Scope(places[:6], is_writable=True), OTHERS)) <= LONGEST_CHARACTERS


@pytest.mark.parametrize("is_writable", [True, False])
def test_keys_of_the_key_service_are_opened_one_by_one(is_writable: bool):
    keys = ["arn:aws:kms:eu-west-1:1:key/a", "arn:aws:kms:eu-west-1:1:key/b"]
    scope = Scope((Location.parse("s3://bkt/a"),), is_writable=is_writable)

    statements = json.loads(session_policy(scope, OTHERS, kms_keys=keys))["Statement"]

    about_keys = [each for each in statements if each["Action"][0].startswith("kms:")]
    assert [each["Resource"] for each in about_keys] == [keys]
    assert ("kms:GenerateDataKey" in about_keys[0]["Action"]) == is_writable
    assert "kms:Decrypt" in about_keys[0]["Action"]


def test_a_key_of_the_key_service_is_no_pattern():
    scope = Scope((Location.parse("s3://bkt/a"),), is_writable=False)
    key = "arn:aws:kms:eu-west-1:1:key/*"

    with pytest.raises(StorageRefused):
        session_policy(scope, OTHERS, kms_keys=[key])

    assert "key/${*}" in session_policy(scope, AMAZON, kms_keys=[key])


def test_a_session_of_a_role_may_not_assume_roles():
    scope = Scope((Location.parse("s3://bkt/a"),), is_writable=False)

    assert '{"Effect":"Deny","Action":"sts:*","Resource":"*"}' in session_policy(scope, AMAZON)
    assert "sts:" not in session_policy(scope, OTHERS)
