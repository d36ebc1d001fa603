import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from cynosure.common.errors import Misconfigured
from cynosure.common.key_file import add_primary_key, open_keyring
from cynosure.common.keyring import sealed_key_id
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.common.secrets import Secret

KEY_TEXT = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
CONTEXT = ("default", "connection", "42")


def test_the_first_start_makes_a_private_key_file_that_the_next_one_uses(tmp_path):
    data_dir = tmp_path / "data"
    sealed = open_keyring(KeyringSettings(), data_dir).encrypt(b"value", CONTEXT)

    assert open_keyring(KeyringSettings(), data_dir).decrypt(sealed, CONTEXT) == b"value"
    assert stat.S_IMODE((data_dir / "keyring.json").stat().st_mode) == 0o600
    assert [path.name for path in data_dir.iterdir()] == ["keyring.json"]


def _start(data_dir: Path, results) -> None:
    results.put(open_keyring(KeyringSettings(), data_dir).encrypt(b"value", CONTEXT))


def test_workers_that_start_together_agree_on_one_key(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_start, args=(tmp_path, results)) for _ in range(6)]
    for worker in workers:
        worker.start()
    sealed = [results.get(timeout=30) for _ in workers]
    for worker in workers:
        worker.join()

    ring = open_keyring(KeyringSettings(), tmp_path)
    assert [ring.decrypt(each, CONTEXT) for each in sealed] == [b"value"] * 6


def test_an_added_key_is_primary_and_older_values_still_open(tmp_path):
    sealed = open_keyring(KeyringSettings(), tmp_path).encrypt(b"value", CONTEXT)

    assert add_primary_key(tmp_path / "keyring.json") == "k2"

    ring = open_keyring(KeyringSettings(), tmp_path)
    assert ring.decrypt(sealed, CONTEXT) == b"value"
    assert sealed_key_id(ring.rewrap(sealed, CONTEXT)) == "k2"
    assert stat.S_IMODE((tmp_path / "keyring.json").stat().st_mode) == 0o600


def test_a_key_file_that_others_can_read_is_refused(tmp_path):
    open_keyring(KeyringSettings(), tmp_path)
    (tmp_path / "keyring.json").chmod(0o640)

    with pytest.raises(Misconfigured) as refused:
        open_keyring(KeyringSettings(), tmp_path)

    assert refused.value.details["mode"] == "0640"
    assert "chmod 600" in refused.value.fix


@pytest.mark.parametrize(
    "content", ["", "{", '{"primary": "k1"}', '{"primary": "k1", "keys": {"k1": "%"}}', "[]"]
)
def test_a_damaged_key_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "keyring.json"
    path.touch(0o600)
    path.write_text(content)

    with pytest.raises(Misconfigured) as refused:
        open_keyring(KeyringSettings(), tmp_path)

    assert refused.value.fix
    assert path.read_text() == content


def test_an_error_about_a_key_file_does_not_show_a_key(tmp_path):
    path = tmp_path / "keyring.json"
    path.touch(0o600)
    path.write_text(json.dumps({"primary": "k1", "keys": {"k1": f"{KEY_TEXT}!"}}))

    with pytest.raises(Misconfigured) as refused:
        open_keyring(KeyringSettings(), tmp_path)

    assert KEY_TEXT not in str(refused.value)
    assert refused.value.__cause__ is None


def test_keys_from_settings_need_no_file(tmp_path):
    settings = KeyringSettings(keys={"a": Secret(KEY_TEXT)})

    sealed = open_keyring(settings, tmp_path).encrypt(b"value", CONTEXT)

    assert sealed_key_id(sealed) == "a"
    assert os.listdir(tmp_path) == []


def test_several_keys_need_a_primary(tmp_path):
    keys = {"a": Secret(KEY_TEXT), "b": Secret(KEY_TEXT)}

    with pytest.raises(Misconfigured):
        open_keyring(KeyringSettings(keys=keys), tmp_path)
    assert open_keyring(KeyringSettings(keys=keys, primary="b"), tmp_path).primary == "b"


def test_a_key_of_the_wrong_length_is_named(tmp_path):
    with pytest.raises(Misconfigured) as refused:
        open_keyring(KeyringSettings(keys={"a": Secret("AAEC")}), tmp_path)

    assert refused.value.details["key_id"] == "a"


def test_a_directory_that_cannot_hold_the_file_is_refused_by_name(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(Misconfigured) as refused:
        open_keyring(KeyringSettings(), tmp_path / "file" / "data")

    assert refused.value.details["file"].endswith("keyring.json")
    assert refused.value.fix
