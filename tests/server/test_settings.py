import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from cynosure.common.delegated.settings import RetryPolicy
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import Misconfigured
from cynosure.common.settings.values import dict_value_type, unwrap_optional
from cynosure.server.delegation_settings import check_service
from cynosure.server.settings import ALIASES, Settings, load_settings
from cynosure.server.settings_reference import _structs, field_docs, render_page

ROOT = Path(__file__).parents[2]


def load(tmp_path, toml="", **given):
    file = tmp_path / "cynosure.toml"
    file.write_text(toml)
    return load_settings(file=file, environment=given.pop("environment", {}), **given)


def test_the_defaults_are_valid_and_those_of_the_documentation(tmp_path):
    settings = load(tmp_path)

    assert settings == Settings()
    assert (settings.server.host, settings.server.port, settings.server.workers) == ("127.0.0.1", 8181, 1)
    persistence = settings.persistence
    assert persistence.commit_deadline == timedelta(seconds=60)
    assert persistence.page_token_life == timedelta(hours=1)
    assert persistence.head_staleness == timedelta(0)
    keys = settings.idempotency
    assert (keys.enabled, keys.lifetime, keys.cleanup.enabled) == (True, timedelta(minutes=30), True)
    assert keys.wait == timedelta(seconds=30)
    gc = persistence.gc
    assert (gc.interval, gc.grace) == (timedelta(days=2), timedelta(hours=3))
    assert (gc.history_retention, gc.undrop_window) == (timedelta(days=30), timedelta(days=7))
    assert settings.telemetry.otel_endpoint is None


def test_the_store_is_embedded_in_the_data_directory_unless_set(tmp_path):
    assert load(tmp_path, "server.data_dir = '/d'").store_url.reveal() == "sqlite:/d/store.db"
    assert load(tmp_path, "persistence.url = 'memory:'").store_url.reveal() == "memory:"


def test_the_operator_socket_is_in_the_data_directory(tmp_path):
    assert load(tmp_path, "server.data_dir = '/d'").server.operator_socket_path == Path("/d/operator.sock")


def test_settings_print_no_password(tmp_path):
    settings = load(tmp_path, "persistence.url = 'postgresql://u:hunter2@h/d'\nkeyring.keys.a = 'hunter2'")

    assert "hunter2" not in repr(settings)


@pytest.mark.parametrize(
    ("toml", "low", "high"),
    [
        ("commit_deadline = '1h'", "persistence.commit_deadline", "persistence.page_token_life"),
        ("page_token_life = '3h'", "persistence.page_token_life", "persistence.gc.grace"),
        ("gc.grace = '59m'", "persistence.page_token_life", "persistence.gc.grace"),
        ("gc.history_retention = '50m'", "persistence.page_token_life", "persistence.gc.history_retention"),
        ("head_staleness = '4h'", "persistence.head_staleness", "persistence.gc.grace"),
        ("gc.undrop_window = '31d'", "persistence.gc.undrop_window", "persistence.gc.history_retention"),
        (
            "node_lease.renewal = '10m'",
            "2 * persistence.node_lease.renewal",
            "persistence.node_lease.duration",
        ),
    ],
)
def test_lifetimes_out_of_order_are_refused_and_both_are_named(tmp_path, toml, low, high):
    with pytest.raises(Misconfigured) as refused:
        load(tmp_path, f"[persistence]\n{toml}")

    assert list(refused.value.details) == [low, high]
    assert all(value[-1] in "smhd" for value in refused.value.details.values())
    assert low in refused.value.fix
    assert high in refused.value.fix


@pytest.mark.parametrize(
    "toml",
    [
        "gc.undrop_window = '30d'",
        "commit_deadline = '59m'",
        "head_staleness = '10s'",
    ],
)
def test_lifetimes_at_their_limit_are_accepted(tmp_path, toml):
    load(tmp_path, f"[persistence]\n{toml}")


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ("lifetime = '176m'", "idempotency.lifetime + idempotency.buffer"),
        ("wait = '90s'", "idempotency.wait"),
        ("lease = '30m'", "idempotency.lease"),
    ],
)
def test_a_key_that_would_outlive_its_answer_or_its_request_is_refused(tmp_path, toml, named):
    with pytest.raises(Misconfigured) as refused:
        load(tmp_path, f"[idempotency]\n{toml}")

    assert named in refused.value.fix


def test_keys_may_live_until_the_collector_comes(tmp_path):
    load(tmp_path, "[idempotency]\nlifetime = '174m'\nwait = '89s'")
    load(tmp_path, "[idempotency]\nlifetime = '1d'\n[persistence]\ngc.grace = '2d'")


def test_a_place_is_kept_for_longer_than_credentials_for_it_live(tmp_path):
    with pytest.raises(Misconfigured, match="staged"):
        load(tmp_path, "[catalog]\nstaging_lifetime = '2h'\n[storage]\ncredential_lifetime = '2h'")

    load(tmp_path, "[catalog]\nstaging_lifetime = '121m'\n[storage]\ncredential_lifetime = '2h'")


@pytest.mark.parametrize("toml", ["certificate = 'c'", "key = 'k'", "client_ca = 'a'"])
def test_half_a_tls_configuration_is_refused(tmp_path, toml):
    with pytest.raises(Misconfigured):
        load(tmp_path, f"[server.tls]\n{toml}")


def test_the_file_is_found_by_flag_then_variable_then_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_settings(environment={}).server.port == 8181
    Path("cynosure.toml").write_text("server.port = 1")
    Path("variable.toml").write_text("server.port = 2")
    Path("flag.toml").write_text("server.port = 3")
    variable = {"CYNOSURE_CONFIG": "variable.toml"}

    assert load_settings(environment={}).server.port == 1
    assert load_settings(environment=variable).server.port == 2
    assert load_settings(file=Path("flag.toml"), environment=variable).server.port == 3


def test_the_process_environment_is_read_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CYNOSURE_SERVER__PORT", "4")

    assert load_settings().server.port == 4


def test_the_known_aliases_work(tmp_path):
    settings = load(tmp_path, "[polaris.idempotency]\nlifetime = 'PT45M'")
    assert settings.idempotency.lifetime == timedelta(minutes=45)
    settings = load(tmp_path, "[polaris.idempotency]\nenabled = false\ncleanup.enabled = false")
    assert not settings.idempotency.enabled
    assert not settings.idempotency.cleanup.enabled


def test_the_names_of_the_proposed_delegation_service_work(tmp_path):
    """Literally as the proposal writes them."""
    delegation = load(
        tmp_path,
        """
        polaris.delegation-service.task-type = "delegated"
        polaris.delegation-service.endpoint = "https://delegation-service:8182"
        delegation.sync-timeout = "20s"
        delegation.task.lease.lost-timeout-duration = "2h"
        delegation.retry.default.max-attempts = 7
        delegation.retry.default.initial-backoff-duration = "10s"
        delegation.retry.default.backoff-multiplier = 3.0
        delegation.retry.default.max-backoff-duration = "30m"
        delegation.retry.TABLE_PURGE.max-attempts = 12
        """,
    ).delegation

    assert delegation.is_delegated
    assert delegation.endpoint == "https://delegation-service:8182"
    assert delegation.sync_timeout == timedelta(seconds=20)
    assert delegation.task.lease.lost_timeout == timedelta(hours=2)
    ten_s, half_an_hour, a_minute = timedelta(seconds=10), timedelta(minutes=30), timedelta(minutes=1)
    assert delegation.retry.of(TaskType.SNAPSHOT_EXPIRY) == RetryPolicy(7, ten_s, 3.0, half_an_hour)
    assert delegation.retry.of(TaskType.TABLE_PURGE) == RetryPolicy(12, a_minute, 3.0, half_an_hour)


def test_the_defaults_of_the_proposed_delegation_service_hold(tmp_path):
    delegation = load(tmp_path, "").delegation

    assert not delegation.is_delegated
    assert delegation.task.lease.lost_timeout == timedelta(hours=1)
    assert delegation.service.polling == timedelta(seconds=5)
    half_a_minute, hour = timedelta(seconds=30), timedelta(hours=1)
    assert delegation.retry.of(TaskType.DATA_COMPACTION) == RetryPolicy(5, half_a_minute, 2.0, hour)
    assert delegation.retry.of(TaskType.TABLE_PURGE) == RetryPolicy(10, timedelta(minutes=1), 2.0, hour)


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ("task_type = 'delegated'", "delegation.endpoint"),
        ("endpoint = 'http://elsewhere:8182'", "https"),
        ("endpoint = 'ftp://127.0.0.1'", "https"),
        ("sync_timeout = '90s'", "server.request_timeout"),
        ("tls.certificate = 'c'", "delegation.tls.key"),
        ("service.catalog_url = 'http://elsewhere:8181'", "https"),
        ("service.catalog_tls.key = 'k'", "delegation.service.catalog_tls.certificate"),
        ("service.certificate = 'c'", "delegation.service.key"),
        ("service.certificate = 'c'\nservice.key = 'k'", "client_ca"),
        ("service.client_ca = 'a'", "delegation.service.certificate"),
        ("service.client_names = []", "Name the clients"),
    ],
)
def test_delegation_that_cannot_work_is_refused(tmp_path, toml, named):
    with pytest.raises(Misconfigured) as refused:
        load(tmp_path, f"[delegation]\n{toml}")

    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ("host = '0.0.0.0'\ncredentials_file = 'f'", "client_ca"),
        ("", "cynosure delegation init"),
        ("client_id = 'x'", "client_secret"),
        ("client_id = 'x'\nclient_secret = 'y'\ncredentials_file = 'f'", "not both"),
    ],
)
def test_a_service_that_others_could_listen_to_or_without_a_principal_is_refused(tmp_path, toml, named):
    with pytest.raises(Misconfigured) as refused:
        check_service(load(tmp_path, f"[delegation.service]\n{toml}").delegation.service)

    assert named in str(refused.value)


def test_every_alias_leads_to_a_setting_that_exists():
    for ours in filter(None, ALIASES.values()):
        struct = Settings
        for key in ours.split("."):
            struct = {field.name: field.type for field in msgspec.structs.fields(struct)}[key]


def test_every_struct_is_frozen_and_refuses_unknown_fields():
    for struct, _ in _structs(Settings, ()):
        assert struct.__struct_config__.frozen, struct
        assert struct.__struct_config__.forbid_unknown_fields, struct


def test_every_field_has_a_docstring_and_outside_of_named_tables_a_default():
    for struct, path in _structs(Settings, ()):
        docs = field_docs(struct)
        for field in msgspec.structs.fields(struct):
            assert docs.get(field.name), (struct, field.name)
            assert not field.required or "NAME" in path, (struct, field.name)


def test_every_setting_and_alias_is_on_the_page():
    page = render_page()

    for struct, path in _structs(Settings, ()):
        for field in msgspec.structs.fields(struct):
            kind = unwrap_optional(field.type)
            if dict_value_type(kind) is None and not hasattr(kind, "__struct_fields__"):
                assert f"| `{'.'.join((*path, field.name))}` |" in page
    for name in ALIASES:
        assert f"| `{name}` |" in page


@pytest.mark.parametrize("module", ["settings_reference", "metrics_reference"])
def test_the_generated_page_is_fresh(module):
    command = [sys.executable, "-m", f"cynosure.server.{module}", "--check"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["settings_reference", "metrics_reference"])
def test_a_stale_page_fails_the_check_and_is_renewed_without_it(tmp_path, module):
    (tmp_path / "docs/reference").mkdir(parents=True)
    page = tmp_path / f"docs/reference/{module.removesuffix('_reference')}.md"
    page.write_text("old")
    command = [sys.executable, "-m", f"cynosure.server.{module}"]

    assert (
        subprocess.run([*command, "--check"], cwd=tmp_path, capture_output=True, check=False).returncode == 1
    )
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert (
        subprocess.run([*command, "--check"], cwd=tmp_path, capture_output=True, check=False).returncode == 0
    )
