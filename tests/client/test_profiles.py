import stat
from pathlib import Path

import pytest

from cynosure.client.profiles import Profile, Profiles, load_profiles, profiles_path, write_profiles
from cynosure.common.errors import Misconfigured

PROD = Profile("https://catalog.example.org", realm="north", client_id="alice", client_secret="hunter2")


def test_what_is_written_is_read_again_and_is_the_users_alone(tmp_path: Path) -> None:
    path = profiles_path({"XDG_CONFIG_HOME": str(tmp_path / "config")})

    write_profiles(path, Profiles({"prod": PROD}, "prod"))
    write_profiles(path, Profiles({"prod": PROD, "test": Profile("http://127.0.0.1:1")}, "prod"))

    found = load_profiles(path)
    assert found.get("prod") == PROD
    assert (found.default, sorted(found.profiles)) == ("prod", ["prod", "test"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["profiles.json"]


def test_without_a_file_there_are_none(tmp_path: Path) -> None:
    assert load_profiles(tmp_path / "none") == Profiles()


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "profiles.json"
    write_profiles(path, Profiles({"prod": PROD}))
    path.chmod(0o640)

    with pytest.raises(Misconfigured, match="Other users can read"):
        load_profiles(path)


@pytest.mark.parametrize("text", ["nonsense", '{"profiles": {"a": {}}}', '{"unknown": 1}', "[]"])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profiles.json"
    path.write_text(text)
    path.chmod(0o600)

    with pytest.raises(Misconfigured, match=r"profiles\.json"):
        load_profiles(path)


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(Misconfigured, match="prod"):
        Profiles({"prod": PROD}).get("pord")


def test_a_profile_does_not_show_its_secret() -> None:
    assert "hunter2" not in repr(Profiles({"prod": PROD}))
