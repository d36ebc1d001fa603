from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct, field

from cynosure.common.errors import Misconfigured
from cynosure.common.secrets import Secret
from cynosure.common.settings import (
    ByteSize,
    Duration,
    DurationOrZero,
    Texts,
    read_environment,
    read_file,
    read_overrides,
    read_settings,
)


class Inner(Struct, frozen=True, forbid_unknown_fields=True):
    grace: Duration = timedelta(hours=3)
    staleness: DurationOrZero = timedelta(0)


class Door(Struct, frozen=True, forbid_unknown_fields=True):
    to: str
    is_open: bool = False
    signs: Texts = ()
    guests: dict[str, str] = field(default_factory=dict)
    inner: Inner = Inner()


class Room(Struct, frozen=True, forbid_unknown_fields=True):
    port: Annotated[int, Meta(ge=1, le=65535)] = 8181
    ratio: float = 0.5
    name: str = "n"
    is_on: bool = False
    level: Literal["debug", "info"] = "info"
    path: Path | None = None
    cache_bytes: ByteSize = 1024
    password: Secret | None = None
    keys: dict[str, Secret] = field(default_factory=dict)
    inner: Inner = Inner()
    doors: dict[str, Door] = field(default_factory=dict)


class Root(Struct, frozen=True, forbid_unknown_fields=True):
    room: Room = Room()


ROOMS = frozenset({"room"})
ALIASES = {"polaris.room.port": "room.port", "polaris.*.lost-timeout": None}


def read(*, toml="", env=None, flags=None, tmp_path=None):
    sources = []
    if toml:
        file = tmp_path / "cynosure.toml"
        file.write_text(toml)
        sources.append(read_file(file))
    sources += [read_environment(env or {}, ROOMS), read_overrides(flags or {})]
    return read_settings(Root, sources, ALIASES).room


def refused(**given):
    with pytest.raises(Misconfigured) as error:
        read(**given)
    return error.value


# --- what is read ------------------------------------------------------------------------------


def test_nothing_given_leaves_the_defaults():
    assert read() == Room()


def test_a_file_sets_every_kind_of_value(tmp_path):
    (tmp_path / "pw").write_text("from-file\n")
    room = read(
        tmp_path=tmp_path,
        toml=f"""
        [room]
        port = 80
        ratio = 1
        name = "x"
        is_on = true
        level = "debug"
        path = "/tmp/x"
        cache_bytes = "64 MiB"
        password = {{ file = "{tmp_path}/pw" }}
        keys.a = "A"
        [room.inner]
        grace = "PT30M"
        staleness = "0s"
        """,
    )

    assert room == Room(
        port=80,
        ratio=1,
        name="x",
        is_on=True,
        level="debug",
        path=Path("/tmp/x"),
        cache_bytes=64 * 2**20,
        password=Secret("from-file"),
        keys={"a": Secret("A")},
        inner=Inner(grace=timedelta(minutes=30)),
    )


def test_the_environment_sets_every_kind_of_value(tmp_path):
    (tmp_path / "pw").write_text("from-file")
    room = read(
        env={
            "CYNOSURE_ROOM__PORT": "80",
            "CYNOSURE_ROOM__RATIO": "0.25",
            "CYNOSURE_ROOM__NAME": "true",
            "CYNOSURE_ROOM__IS_ON": "true",
            "CYNOSURE_ROOM__LEVEL": "debug",
            "CYNOSURE_ROOM__PATH": "x",
            "CYNOSURE_ROOM__CACHE_BYTES": "2048",
            "CYNOSURE_ROOM__PASSWORD__FILE": str(tmp_path / "pw"),
            "CYNOSURE_ROOM__KEYS__A": "A",
            "CYNOSURE_ROOM__INNER__GRACE": "2d",
        }
    )

    assert room == Room(
        port=80,
        ratio=0.25,
        name="true",
        is_on=True,
        level="debug",
        path=Path("x"),
        cache_bytes=2048,
        password=Secret("from-file"),
        keys={"a": Secret("A")},
        inner=Inner(grace=timedelta(days=2)),
    )


def test_environment_names_ignore_case():
    assert read(env={"cynosure_room__Port": "80"}).port == 80


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path):
    room = read(
        tmp_path=tmp_path,
        toml="room = { port = 1, name = 'file', level = 'debug' }",
        env={"CYNOSURE_ROOM__PORT": "2", "CYNOSURE_ROOM__NAME": "env"},
        flags={"room.port": 3, "room.name": None},
    )

    assert (room.port, room.name, room.level) == (3, "env", "debug")


def test_a_stronger_source_replaces_a_secret_whatever_its_form(tmp_path):
    (tmp_path / "pw").write_text("strong")
    room = read(
        tmp_path=tmp_path,
        toml="room.password = 'weak'",
        env={"CYNOSURE_ROOM__PASSWORD__FILE": str(tmp_path / "pw")},
    )

    assert room.password == Secret("strong")


def test_dictionaries_merge_by_key(tmp_path):
    room = read(
        tmp_path=tmp_path,
        toml="[room.keys]\na = 'A'\nb = 'B'",
        env={"CYNOSURE_ROOM__KEYS__B": "B2"},
    )

    assert room.keys == {"a": Secret("A"), "b": Secret("B2")}


def test_a_dictionary_of_structs_is_a_table_for_each_name(tmp_path):
    room = read(
        tmp_path=tmp_path,
        toml="""
        [room.doors.front]
        to = "street"
        signs = ["in", "out"]
        guests."Data Team" = "yes"
        inner.grace = "1h"
        [room.doors.back]
        to = "yard"
        """,
    )

    assert room.doors == {
        "front": Door(
            "street", signs=("in", "out"), guests={"Data Team": "yes"}, inner=Inner(timedelta(hours=1))
        ),
        "back": Door("yard"),
    }


def test_the_environment_adds_to_the_table_of_a_name_or_makes_another(tmp_path):
    room = read(
        tmp_path=tmp_path,
        toml="[room.doors.front]\nto = 'street'\nis_open = true",
        env={
            "CYNOSURE_ROOM__DOORS__FRONT__TO": "park",
            "CYNOSURE_ROOM__DOORS__BACK__TO": "yard",
            "CYNOSURE_ROOM__DOORS__BACK__SIGNS": "a, b,",
            "CYNOSURE_ROOM__DOORS__BACK__GUESTS__ANN": "no",
        },
    )

    assert room.doors == {
        "front": Door("park", is_open=True),
        "back": Door("yard", signs=("a", "b"), guests={"ann": "no"}),
    }


def test_a_flag_may_name_an_entry_of_a_dictionary_of_structs():
    assert read(flags={"room.doors.front.to": "street"}).doors == {"front": Door("street")}


@pytest.mark.parametrize("toml", ["[room.doors.front]", "room.doors.front.is_open = true"])
def test_a_table_of_a_dictionary_needs_what_its_struct_requires(tmp_path, toml):
    error = refused(tmp_path=tmp_path, toml=toml)

    assert error.message == "A required setting is missing"
    assert error.details["key"] == "room.doors.front.to"


def test_an_unknown_key_in_a_table_of_a_dictionary_is_refused_with_its_whole_name(tmp_path):
    error = refused(tmp_path=tmp_path, toml="[room.doors.front]\nto = 'x'\nsings = ['a']")

    assert error.details["key"] == "room.doors.front.sings"
    assert "room.doors.front.signs" in error.fix


def test_flags_may_carry_typed_values():
    room = read(flags={"room.path": Path("/x"), "room.inner.grace": timedelta(1), "room.is_on": True})

    assert (room.path, room.inner.grace, room.is_on) == (Path("/x"), timedelta(1), True)


def test_other_variables_are_left_alone():
    assert read(env={"PATH": "/bin", "CYNOSURE_SPECS": "x", "CYNOSURE_CONFIG": "y"}) == Room()


# --- what is refused ---------------------------------------------------------------------------


def test_an_unknown_key_names_itself_its_line_and_the_closest_name(tmp_path):
    error = refused(tmp_path=tmp_path, toml="# x\n\n[room]\nname = 'a'\nprot = 80\n")

    assert error.details == {"key": "room.prot", "source": f"{tmp_path}/cynosure.toml:5"}
    assert "room.port" in error.fix


@pytest.mark.parametrize(
    ("toml", "line"),
    [
        ("\nroom.prot = 1", 2),
        ("[room]\n\n'prot' = 1 # c", 3),
        ('[ "room" ] # c\nprot=1', 2),
        ("[room.inner]\ngrace='1h'\n[room]\nprot = 1", 4),
        ("\nroom = { name = 'x', prot = 1 }", 2),
        ("[rom]\n", 1),
        ("room.name = '''\n[a]\nb = 1\n'''\n[room.inner]\nx = 1", 6),
    ],
)
def test_the_line_is_found_however_the_key_is_written(tmp_path, toml, line):
    assert refused(tmp_path=tmp_path, toml=toml).details["source"].endswith(f":{line}")


def test_an_unknown_variable_names_itself_and_the_closest_name():
    error = refused(env={"CYNOSURE_ROOM__INNER__GRAZE": "1h"})

    assert error.details == {"key": "room.inner.graze", "source": "CYNOSURE_ROOM__INNER__GRAZE"}
    assert "room.inner.grace" in error.fix


def test_an_unknown_room_lists_what_there_is():
    assert "room" in refused(env={"CYNOSURE_XYZXYZ__A": "1"}).fix


def test_a_dash_for_an_underscore_is_recognised(tmp_path):
    assert "room.cache_bytes" in refused(tmp_path=tmp_path, toml="room.cache-bytes = 1").fix


def test_a_single_underscore_after_the_room_is_caught():
    error = refused(env={"CYNOSURE_ROOM_PORT": "80"})

    assert error.details["variable"] == "CYNOSURE_ROOM_PORT"
    assert "CYNOSURE_ROOM__" in error.fix


@pytest.mark.parametrize(
    "toml",
    [
        "room.port = '80'",
        "room.port = true",
        "room.port = 80.0",
        "room.port = 0",
        "room.port = 65536",
        "room.port = [80]",
        "room.port = {}",
        "room.port.x = 1",
        "room.ratio = '0.5'",
        "room.name = 1",
        "room.is_on = 'true'",
        "room.is_on = 1",
        "room.level = 'loud'",
        "room.path = ''",
        "room.cache_bytes = '64M'",
        "room.cache_bytes = -1",
        "room.cache_bytes = true",
        "room.password = 5",
        "room.password = ''",
        "room.password = {}",
        "room.password = { file = '/nonexistent' }",
        "room.password = { fil = 'x' }",
        "room.keys = 'x'",
        "room.keys.a = 1",
        "room.doors = 'x'",
        "room.doors.front = 'x'",
        "room.doors.front.signs = 'x'",
        "room.doors.front.signs = [1]",
        "room.doors.front.signs = { a = 'x' }",
        "room.inner = 'x'",
        "room.inner.grace = 30",
        "room.inner.grace = '30'",
        "room.inner.grace = '0s'",
        "room.inner.grace = '-PT1H'",
        "room = 1",
        "room.inner.grace = 1979-05-27",
        "rom = {}",
    ],
)
def test_a_wrong_value_is_refused_with_a_fix(tmp_path, toml):
    error = refused(tmp_path=tmp_path, toml=toml)

    assert error.fix.endswith(".")
    assert error.fix[0].isupper()


@pytest.mark.parametrize(
    "env",
    [
        {"CYNOSURE_ROOM__PORT": "eighty"},
        {"CYNOSURE_ROOM__PORT": ""},
        {"CYNOSURE_ROOM__RATIO": "half"},
        {"CYNOSURE_ROOM__IS_ON": "maybe"},
        {"CYNOSURE_ROOM__INNER": "x"},
        {"CYNOSURE_ROOM__": "x"},
        {"CYNOSURE___PORT": "x"},
    ],
)
def test_a_wrong_variable_is_refused_by_name(env):
    assert refused(env=env).details["source"] == next(iter(env))


def test_a_wrong_value_is_described_by_its_shape_not_shown(tmp_path):
    error = refused(tmp_path=tmp_path, toml="room.inner.grace = 'hunter2'")

    assert error.details["key"] == "room.inner.grace"
    assert error.details["got"] == "text of 7 characters"
    assert "hunter2" not in str(error)
    assert error.__cause__ is None


def test_the_same_setting_twice_in_one_source_is_refused():
    error = refused(env={"CYNOSURE_ROOM__PORT": "1", "cynosure_room__port": "2"})

    assert error.details["key"] == "room.port"
    assert "CYNOSURE_ROOM__PORT" in error.details["source"]
    assert "cynosure_room__port" in error.details["source"]


def test_a_file_that_is_not_toml_names_the_line(tmp_path):
    error = refused(tmp_path=tmp_path, toml="[room]\nport == 1\n")

    assert "line 2" in error.details["reason"]


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Misconfigured) as error:
        read_file(tmp_path / "absent.toml")

    assert error.value.details["file"].endswith("absent.toml")


@given(st.text(max_size=60))
def test_any_text_in_the_file_is_read_or_refused_cleanly(text):
    from cynosure.common.settings.sources import _key_lines

    assert all(number >= 1 for number in _key_lines(text).values())


class Needs(Struct, frozen=True, forbid_unknown_fields=True):
    endpoint: str


def test_a_required_setting_that_is_missing_is_named():
    with pytest.raises(Misconfigured) as error:
        read_settings(Needs, [])

    assert error.value.details["key"] == "endpoint"


# --- aliases -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "toml", ["[polaris.room]\nport = 80", "'polaris.room.port' = 80", "polaris.room.port = 80"]
)
def test_an_alias_in_the_file_sets_our_setting(tmp_path, toml):
    assert read(tmp_path=tmp_path, toml=toml).port == 80


def test_an_alias_in_the_environment_sets_our_setting():
    assert read(env={"CYNOSURE_POLARIS__ROOM__PORT": "80"}).port == 80


def test_a_wrong_value_under_an_alias_names_our_setting_and_its_place(tmp_path):
    error = refused(tmp_path=tmp_path, toml="polaris.room.port = 0")

    assert error.details["key"] == "room.port"
    assert error.details["source"].endswith(":1")


def test_an_alias_beside_its_setting_is_refused(tmp_path):
    error = refused(tmp_path=tmp_path, toml="room.port = 1\npolaris.room.port = 2")

    assert error.details["source"] == f"{tmp_path}/cynosure.toml:1 and {tmp_path}/cynosure.toml:2"


def test_an_alias_of_something_not_built_is_refused_with_that_reason(tmp_path):
    for written in (
        {"toml": "polaris.x.lost-timeout = '1h'"},
        {"env": {"CYNOSURE_POLARIS__X__LOST_TIMEOUT": "1h"}},
    ):
        assert "does not have" in refused(tmp_path=tmp_path, **written).message


def test_an_unknown_name_beside_the_aliases_is_unknown(tmp_path):
    assert "no such setting" in refused(tmp_path=tmp_path, toml="polaris.room.prt = 1").message
