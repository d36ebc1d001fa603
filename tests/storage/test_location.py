import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.persistence.index import decode_key, encode_key
from cynosure.storage.location import Location, is_allowed


def parse(text: str) -> Location:
    return Location.parse(text)


# --- one place, many spellings ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spellings", "key"),
    [
        (
            ["s3://bkt/a/b", "s3a://bkt/a/b", "s3n://bkt/a/b", "S3://bkt/a/b", "s3://bkt/a/b/"],
            ("s3", "bkt", "a", "b"),
        ),
        (
            ["/a/b", "/a/b/", "file:/a/b", "file:///a/b", "file://localhost/a/b", "FILE:///a/b/"],
            ("file", "", "a", "b"),
        ),
        (["gs://bkt/a", "gs://bkt/a/"], ("gs", "bkt", "a")),
        (
            [
                "abfss://lake@acct.dfs.core.windows.net/a",
                "abfs://lake@acct.dfs.core.windows.net/a/",
                "ABFSS://lake@acct.blob.core.windows.net/a",
                "wasb://lake@acct.blob.core.windows.net/a",
                "wasbs://lake@acct.dfs.core.windows.net/a/",
            ],
            ("az", "lake@acct.dfs.core.windows.net", "a"),
        ),
        (
            ["abfss://a-b@acct.z07.dfs.storage.azure.net", "wasbs://a-b@acct.z07.blob.storage.azure.net/"],
            ("az", "a-b@acct.z07.dfs.storage.azure.net"),
        ),
        (["s3://bkt", "s3a://bkt/"], ("s3", "bkt")),
        (["/", "file:/", "file:///", "file://localhost/"], ("file", "")),
    ],
)
def test_spellings_of_one_place_are_equal(spellings: list[str], key: tuple[str, ...]):
    locations = [parse(spelling) for spelling in spellings]

    assert {location.key() for location in locations} == {key}
    assert len(set(locations)) == 1
    assert not any(locations[0] != other for other in locations)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("s3a://bkt/a/b/", "s3a://bkt/a/b"),
        ("file:/tmp/x/", "file:/tmp/x"),
        ("file://localhost/x", "file://localhost/x"),
        ("/tmp/x", "/tmp/x"),
        ("s3://bkt/", "s3://bkt"),
        ("wasb://lake@acct.blob.core.windows.net/", "wasb://lake@acct.blob.core.windows.net"),
        ("file:///", "file:///"),
        ("/", "/"),
    ],
)
def test_the_spelling_is_kept_without_its_trailing_slash(text: str, kept: str):
    assert parse(text).text == kept
    assert str(parse(text)) == kept
    assert parse(kept) == parse(text)


@pytest.mark.parametrize(
    "base",
    ["s3a://bkt", "s3://bkt/a/", "wasb://abc@acct.blob.b.c", "/", "/a", "file:/", "file:///a", "file:///"],
)
def test_a_child_keeps_the_spelling_of_its_parent(base: str):
    child = parse(base).child("x", "y z")

    assert child == parse(child.text)
    assert child.text.startswith(base.rstrip("/"))
    assert child.text.endswith("/x/y z")
    assert "//x" not in child.text or base == "file:///"
    assert child.relative_to(parse(base)) == "x/y z"
    assert parse(base).child() == parse(base)


# --- path tricks ----------------------------------------------------------------------------------------

HOSTILE = [
    "s3://bkt/a/../b",
    "s3://bkt/..",
    "s3://bkt/./a",
    "s3://bkt/a/.",
    "s3://bkt/a/%2e%2e/b",
    "s3://bkt/a/%2E%2e/b",
    "s3://bkt/a/.%2e/b",
    "s3://bkt/%2e/b",
    "s3://bkt//a",
    "s3://bkt/a//b",
    "s3://bkt/a//",
    "s3://bkt//",
    "s3:///a",
    "s3://",
    "s3:/bkt/a",
    "s3:bkt/a",
    "s3://user@bkt/a",
    "s3://user:password@bkt/a",
    "s3://bkt:9000/a",
    "s3://BKT/a",
    "s3://b kt/a",
    "s3://../a",
    "s3://a..b/c",
    "s3://b\u212at/a",  # the Kelvin sign, which lower-cases to k
    "s3://bkt?x/a",
    "s3://bkt/a?versionId=1",
    "s3://bkt/a#fragment",
    "s3://bkt/a\\b",
    "s3://bkt\\a",
    "s3://bkt/a\\..\\b",
    "s3://bkt/a\x00b",
    "s3://bkt/a\nb",
    "s3://bkt/a\x1fb",
    "s3://bkt/a\x7fb",
    "s3://bkt/a\x85b",
    "s3://bkt/a\u2028b",
    "s3://bkt/a\ud800b",
    "s3://bkt/" + "x" * 256,
    "s3://bkt/" + "é" * 128,
    "s3://bkt/" + "/".join(["x" * 200] * 6),
    "abfss://lake/a",
    "abfss://acct.dfs.core.windows.net/a",
    "abfss:lake@acct.dfs.core.windows.net/a",
    "abfss:///lake@acct.dfs.core.windows.net/a",
    "abfss://@acct.dfs.core.windows.net/a",
    "abfss://lake@acct/a",
    "abfss://lake@acct.core.windows.net/a",
    "abfss://lake@dfs.core.windows.net/a",
    "abfss://lake@acct.dfs.net/a",
    "abfss://lake@acct.dfs.core.windows.net:443/a",
    "abfss://lake@acct.dfs.core.windows.net./a",
    "abfss://lake@acct.dfs.core..windows.net/a",
    "abfss://lake@acct.dfs.-core.windows.net/a",
    "abfss://lake@acct.DFS.core.windows.net/a",
    "abfss://lake@ACCT.dfs.core.windows.net/a",
    "abfss://Lake@acct.dfs.core.windows.net/a",
    "abfss://lake@other@acct.dfs.core.windows.net/a",
    "abfss://lake:secret@acct.dfs.core.windows.net/a",
    "abfss://la--ke@acct.dfs.core.windows.net/a",
    "abfss://-lake@acct.dfs.core.windows.net/a",
    "abfss://$root@acct.dfs.core.windows.net/a",
    "abfss://ab@acct.dfs.core.windows.net/a",
    "abfss://" + "a" * 64 + "@acct.dfs.core.windows.net/a",
    "abfss://lake@ac.dfs.core.windows.net/a",
    "abfss://lake@" + "a" * 25 + ".dfs.core.windows.net/a",
    "abfss://lake@acct.queue.core.windows.net/a",
    "abfss://lake@acct.z1.dfs.storage.azure.net/a",
    "abfss://lake@acct.dfs.core.windows.net//a",
    "abfss://lake@acct.dfs.core.windows.net/a/../b",
    "abfss://lake@acct.dfs.core.windows.net/a./b",
    "abfss://lake@acct.dfs.core.windows.net/a/b.",
    "abfss://lake@acct.dfs.core.windows.net/...",
    "abfss://lake@acct.dfs.core.windows.net?sig=x/a",
    "https://acct.blob.core.windows.net/lake/a",
    "file://host/a",
    "file://host",
    "file://",
    "file:",
    "file:a/b",
    "file:../a",
    "file:////a",
    "file:///a/../b",
    "//a",
    "//host/share",
    "/a//b",
    "/a/../b",
    "relative/path",
    "../a",
    "",
    " ",
    " s3://bkt/a",
    "\ts3://bkt/a",
    "bkt/a",
    "http://bkt/a",
    "https://bkt.s3.amazonaws.com/a",
    "hdfs://host/a",
    "C:\\a",
    "C:/a",
    "\\\\host\\share",
    "${x}",
    "*",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_path_tricks_are_refused_with_the_field_named(text: str):
    with pytest.raises(BadInput) as refused:
        Location.parse(text, field="write.metadata.path")

    assert refused.value.field == "write.metadata.path"
    assert refused.value.fix
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize(
    "segment",
    [
        "...",
        ".hidden",
        "a..b",
        "..a",
        "%20",
        "%2F",
        "%252e%252e",
        "%",
        "a b",
        "*",
        "a:b",
        "a@b",
        "\N{DIVISION SLASH}",
        "\N{FULLWIDTH SOLIDUS}",
        "\N{FRACTION SLASH}",
        "\N{ONE DOT LEADER}\N{ONE DOT LEADER}",
        "\N{FULLWIDTH FULL STOP}\N{FULLWIDTH FULL STOP}",
        "e\N{COMBINING ACUTE ACCENT}",
        "日本語",
        "🧊\N{ZERO WIDTH JOINER}",
        "x" * 255,
    ],
)
def test_everything_else_is_a_literal_name(segment: str):
    location = parse(f"s3://bkt/{segment}/b")

    assert location.segments == (segment, "b")
    assert parse("s3://bkt").child(segment, "b") == location
    assert decode_key(encode_key(*location.key())) == location.key()


def test_names_that_only_look_alike_are_different_places():
    looks = ["a/b", "a\N{DIVISION SLASH}b", "a%2Fb", "a%2fb", "a\N{FULLWIDTH SOLIDUS}b", "A/b", "a /b"]
    looks += ["\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}"]

    assert len({parse(f"s3://bkt/{look}") for look in looks}) == len(looks)


@pytest.mark.parametrize(
    "segment", ["", ".", "..", "%2e%2E", "a/b", "/", "a\\b", "a?b", "a#b", "\0", "x" * 256]
)
def test_a_child_cannot_climb_or_reach_further_than_one_name(segment: str):
    for segments in ((segment,), ("fine", segment), (segment, "fine")):
        with pytest.raises(BadInput):
            parse("s3://bkt/a").child(*segments)


def test_accounts_zones_and_clouds_are_different_places():
    hosts = ["acct.dfs.core.windows.net", "acct2.dfs.core.windows.net", "acct.dfs.core.chinacloudapi.cn"]
    hosts += ["acct.z01.dfs.storage.azure.net", "acct.z02.dfs.storage.azure.net"]

    places = {parse(f"abfss://{container}@{host}/a") for host in hosts for container in ("lake", "pond")}

    assert len(places) == 2 * len(hosts)


def test_a_child_in_azure_does_not_end_with_a_dot():
    for segments in (("a.",), ("a.", "b"), ("b", "...")):
        with pytest.raises(BadInput):
            parse("abfss://lake@acct.dfs.core.windows.net/x").child(*segments)


def test_a_path_that_grows_too_long_is_refused():
    location = parse("s3://bkt/" + "/".join(["é" * 100] * 5))
    assert location.child("x" * 18).key()

    with pytest.raises(BadInput):
        location.child("x" * 20)
    with pytest.raises(BadInput):
        location.child("é" * 10)


# --- containment ----------------------------------------------------------------------------------------


def test_siblings_with_a_common_beginning_do_not_contain_each_other():
    orders, orders2 = parse("s3://bkt/db/orders"), parse("s3://bkt/db/orders2")

    assert not orders.overlaps(orders2)
    assert not orders2.is_within(orders)
    assert orders2.is_within(parse("s3a://bkt/db/"))
    assert orders2.is_within(parse("s3://bkt"))
    assert not orders2.is_within(parse("gs://bkt"))
    assert not orders2.is_within(parse("s3://bkt2"))
    with pytest.raises(BadInput):
        orders2.relative_to(orders)


def test_allowed_is_inside_of_any():
    allowed = [parse("s3://bkt/a"), parse("/data")]

    assert is_allowed(parse("s3n://bkt/a/b"), allowed)
    assert is_allowed(parse("file:/data"), allowed)
    assert not is_allowed(parse("s3://bkt/ab"), allowed)
    assert not is_allowed(parse("s3://bkt/a"), [])


names = st.text(st.sampled_from("ab.%/2eE"), min_size=1, max_size=4)
schemes = st.sampled_from(
    [
        "s3://bkt/",
        "s3a://bkt/",
        "s3n://tub/",
        "gs://bkt/",
        "abfss://lake@acct.dfs.core.windows.net/",
        "wasb://lake@acct.blob.core.windows.net/",
        "abfs://pond@acct.blob.core.windows.net/",
        "file:///",
        "file:/",
        "/",
    ]
)
texts = st.builds(
    lambda scheme, parts, slash: scheme + "/".join(parts) + slash,
    schemes,
    st.lists(names, max_size=4),
    st.sampled_from(["", "/"]),
)


def naive(text: str) -> list[str] | None:
    """The same rules, written the slow and obvious way; `None` where the text is refused."""
    place, rest = text.split(":", 1) if ":" in text else ("file", text)
    place = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "abfss"}.get(place, place)
    rest = rest.replace("@acct.blob.", "@acct.dfs.")
    if ":" in text and rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if place == "file" and (host or not slash):
            return None
        place += host
    else:
        path = rest[1:]
    parts = path.split("/")
    if len(parts) > 1 and parts[-1] == "":
        parts.pop()
    if parts == [""] and not path:
        parts = []
    decoded = [part.replace("%2e", ".").replace("%2E", ".") for part in parts]
    if any(part in ("", ".", "..") for part in decoded):
        return None
    is_cut = place.startswith("abfss") and any(part.endswith(".") for part in parts)
    return None if is_cut else [place, *parts]


def parse_or_none(text: str) -> Location | None:
    try:
        return parse(text)
    except BadInput:
        return None


@given(texts, texts)
def test_equality_and_containment_agree_with_the_naive_model(one: str, two: str):
    first, second = parse_or_none(one), parse_or_none(two)
    model1, model2 = naive(one), naive(two)

    assert (first is None, second is None) == (model1 is None, model2 is None)
    if first is None or second is None or model1 is None or model2 is None:
        return
    assert (first == second) == (model1 == model2)
    assert first.is_within(second) == (model1[: len(model2)] == model2)
    assert first.overlaps(second) == (first.is_within(second) or second.is_within(first))
    assert (encode_key(*first.key()) == encode_key(*second.key())) == (first == second)
    assert first == parse(first.text)
    if first.is_within(second):
        rest = first.relative_to(second)
        assert second.child(*rest.split("/")) == first if rest else first == second


@given(st.text(max_size=60), schemes)
def test_any_text_is_refused_or_survives_a_round_trip(text: str, scheme: str):
    for candidate in (text, scheme + text):
        location = parse_or_none(candidate)
        if location is not None:
            assert parse(location.text) == location
            assert location.text == candidate.removesuffix("/") or location.text == candidate
            assert decode_key(encode_key(*location.key())) == location.key()
            assert not {".", "..", ""} & set(location.segments)
