"""What is administered, over all three ways to a server: the network, the operator socket, in process."""

import asyncio
import json
import secrets
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.known_secrets import KNOWN
from tests.cli.running import Cynosure, Ended

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    directory = tmp_path_factory.mktemp("cli")
    with Processes(directory) as processes:
        yield asyncio.run(start_catalog_server(processes, directory))


Admin = Callable[..., Ended]


@pytest.fixture(params=["network", "socket", "in process"])
def admin(
    request: pytest.FixtureRequest, server: CatalogServer, cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch
) -> Admin:
    """`cynosure` as an administrator, one way or another."""
    flags: tuple[str, ...] = ()
    if request.param == "network":
        monkeypatch.setenv("ROOT_SECRET", server.credential.secret)
        who = ("--client-id", server.credential.client_id, "--client-secret-env", "ROOT_SECRET")
        flags = ("--url", server.url, *who)
    elif request.param == "socket":
        flags = ("--data", str(server.data))
    return lambda *arguments: cynosure(*arguments, *flags)


@pytest.fixture
def warehouse(request: pytest.FixtureRequest, server: CatalogServer, tmp_path: Path) -> Path:
    """Where the server keeps files of catalogs."""
    is_ours = request.node.callspec.params["admin"] == "in process"
    return tmp_path / "data" / "warehouse" if is_ours else server.warehouse


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """One that no other test uses: they share a server."""
    return f"n{abs(hash(request.node.nodeid))}"


def ok(ended: Ended) -> str:
    assert ended.code == 0, ended.err
    return ended.out


def document(ended: Ended) -> Any:
    return json.loads(ok(ended))


def test_principals_and_their_credentials(admin: Admin, name: str) -> None:
    made = document(admin("principals", "create", name, "--property", "team=eu", "--json"))
    renewed = document(admin("principals", "reset-credentials", name, "--json"))
    own = KNOWN.add(secrets.token_hex(16))
    Path("given").write_text(f"{own}\n")
    reset = document(
        admin("principals", "reset-credentials", name, "--new-client-secret-file", "given", "--json")
    )
    ok(admin("principals", "update", name, "--set-property", "team=us", "--set-property", "a=b"))
    ok(admin("principals", "trust", name))
    shown = document(admin("principals", "get", name, "--json"))
    listed = ok(admin("principals", "list"))
    ok(admin("principals", "delete", name))
    gone = admin("principals", "get", name)
    Path("given").unlink()

    shown_once = {each["credentials"]["clientSecret"] for each in (made, renewed, reset)}
    assert len(shown_once) == 3
    assert own in shown_once
    assert shown["properties"] == {"team": "us", "a": "b"}
    assert shown["trustedService"] is True
    assert shown["principalRoles"] == []
    assert made["credentials"]["clientId"] in listed
    assert not any(secret in listed for secret in shown_once)
    assert gone.code == 1
    assert gone.err.startswith("Error: ")


def test_credentials_go_to_a_file_of_their_own(admin: Admin, name: str) -> None:
    made = admin("principals", "create", name, "--credentials-file", "new.secret")
    again = admin("principals", "rotate-credentials", name, "--credentials-file", "new.secret")

    line = json.loads(Path("new.secret").read_text())
    assert (made.code, made.out) == (0, "")
    assert line["principal"] == name
    assert line["clientSecret"] not in made.err
    assert stat.S_IMODE(Path("new.secret").stat().st_mode) == 0o600
    assert again.code == 1
    assert "exists already" in again.err


def test_commands_to_be_pasted_into_a_shell_hold_names_as_words(admin: Admin, name: str) -> None:
    """Names come from users, also those that another issuer's accounts choose."""
    hostile = f"{name}; touch owned #"
    ok(admin("principals", "create", hostile, "--credentials-file", "h.secret"))

    explained = document(admin("explain", hostile, "create-catalog", "--json"))

    assert [shlex.split(each)[-1] for each in explained["commands"]] == [hostile]


def test_from_a_principal_to_a_grant_and_back(admin: Admin, warehouse: Path, name: str) -> None:
    role, rights = f"{name}-role", f"{name}-rights"
    ok(admin("principals", "create", name, "--credentials-file", "p.secret"))
    ok(admin("catalogs", "create", name, "--location", (warehouse / name).as_uri()))
    ok(admin("namespaces", "create", "eu", "--catalog", name))
    ok(admin("namespaces", "create", "eu.orders", "--catalog", name, "--property", "k=v"))
    ok(admin("principal-roles", "create", role, "--property", "a=b"))
    ok(admin("principal-roles", "grant", role, "--principal", name))
    ok(admin("catalog-roles", "create", rights, "--catalog", name))
    ok(admin("catalog-roles", "grant", rights, "--catalog", name, "--principal-role", role))
    granting = ("--catalog", name, "--catalog-role", rights)
    ok(admin("privileges", "namespace", "grant", "TABLE_CREATE", *granting, "--namespace", "eu.orders"))
    ok(admin("privileges", "catalog", "grant", "table_list", *granting))

    question = ("explain", name, "create-table", f"{name}/eu.orders")
    allowed = ok(admin(*question, "--exit-code"))
    grants = document(admin("privileges", "list", *granting, "--json"))
    access = document(admin("principals", "access", name, "--json"))
    roles = document(admin("principal-roles", "list", "--principal", name, "--json"))
    held = document(admin("catalog-roles", "list", name, "--principal-role", role, "--json"))
    assignees = document(admin("catalog-roles", "get", rights, "--catalog", name, "--json"))["assignees"]
    catalogs = document(admin("catalogs", "list", "--principal-role", role, "--json"))
    ok(admin("privileges", "namespace", "revoke", "TABLE_CREATE", *granting, "--namespace", "eu.orders"))
    denied = document(admin(*question, "--json"))
    refused = admin(*question, "--exit-code")
    command = denied["commands"][-1].split()[1:]
    ok(admin(*command))
    again = admin(*question, "--exit-code")

    assert f"{name} MAY create-table" in allowed
    assert f"granted on namespace eu.orders to {role} → {rights}" in allowed
    assert {"type": "namespace", "privilege": "TABLE_CREATE", "namespace": ["eu", "orders"]} in grants
    assert {each["privilege"] for each in access["grants"]} == {"TABLE_CREATE", "TABLE_LIST"}
    assert [each["name"] for each in roles] == [role]
    assert [each["name"] for each in held] == [rights]
    assert assignees == [role]
    assert [each["name"] for each in catalogs] == [name]
    assert denied["allowed"] is False
    assert denied["missing"][0]["privilege"] == "TABLE_CREATE"
    assert refused.code == 1
    assert again.code == 0, "the command that an explanation gives is the right one"

    ok(admin("catalog-roles", "revoke", rights, "--catalog", name, "--principal-role", role))
    ok(admin("principal-roles", "revoke", role, "--principal", name))
    ok(admin("catalog-roles", "delete", rights, "--catalog", name))
    ok(admin("principal-roles", "delete", role))
    listed = ok(admin("namespaces", "list", "--catalog", name, "--recursive"))
    assert listed.split() == ["NAMESPACE", "eu", "eu.orders"]
    shown = document(admin("namespaces", "get", "eu.orders", "--catalog", name, "--json"))
    assert shown["properties"]["k"] == "v"
    ok(admin("namespaces", "delete", "eu.orders", "--catalog", name))
    ok(admin("namespaces", "delete", "eu", "--catalog", name))
    ok(admin("catalogs", "delete", name))
    ok(admin("principals", "delete", name))


def test_tables_and_views_are_listed_shown_and_dropped(
    cynosure: Cynosure, server: CatalogServer, name: str
) -> None:
    catalog = asyncio.run(server.create_catalog(name))
    view = {
        "name": "v",
        "schema": SCHEMA,
        "properties": {},
        "view-version": {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "default-namespace": ["ns"],
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        },
    }

    async def create() -> None:
        async with catalog.client(base_url=catalog.url) as http:
            for path, body in (
                ("namespaces", {"namespace": ["ns"]}),
                ("namespaces/ns/tables", {"name": "t", "schema": SCHEMA}),
                ("namespaces/ns/views", view),
            ):
                (await http.post(f"/{path}", json=body)).raise_for_status()

    asyncio.run(create())
    there = ("--catalog", name, "--namespace", "ns", "--data", str(server.data))

    tables = ok(cynosure("tables", "list", *there))
    shown = ok(cynosure("tables", "get", "t", *there))
    views = ok(cynosure("views", "list", *there))
    said = ok(cynosure("views", "get", "v", *there))
    ok(cynosure("tables", "delete", "t", *there))
    ok(cynosure("views", "delete", "v", *there))
    left = document(cynosure("tables", "list", *there, "--json"))

    assert tables.split() == ["NAMESPACE", "TABLE", "ns", "t"]
    assert "id      long  yes" in shown
    assert views.split() == ["NAMESPACE", "VIEW", "ns", "v"]
    assert "SELECT 1" in said
    assert left == []


def test_profiles_are_made_used_and_forgotten(
    cynosure: Cynosure, server: CatalogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(Path("config.secret").absolute()))
    Path("root.secret").write_text(server.credential.secret)
    who = ("--client-id", server.credential.client_id, "--client-secret-file", "root.secret")

    ok(cynosure("profiles", "create", "here", "--url", server.root, *who, "--default"))
    taken = cynosure("profiles", "create", "here", "--url", server.root)
    listed = cynosure("profiles", "list")
    me = document(cynosure("whoami", "--json"))
    ok(cynosure("profiles", "update", "here", "--realm", "nowhere"))
    lost = cynosure("whoami")
    shown = ok(cynosure("profiles", "get", "here"))
    ok(cynosure("profiles", "delete", "here"))
    local = cynosure("whoami", "--data", str(server.data))
    shutil.rmtree("config.secret")

    assert taken.code == 1
    assert "here *" in listed.out
    assert me == {"realm": "default", "principal": "root", "roles": ["service_admin"], "actor": None}
    assert lost.code == 1
    assert "nowhere" in shown
    assert "operator" in local.out
    everything = "".join(each.out + each.err for each in (taken, listed, lost, local)) + shown
    assert server.credential.secret not in everything


def test_who_may_not_is_told_the_privilege_and_who_is_nobody_is_told_that(
    cynosure: Cynosure, server: CatalogServer, name: str
) -> None:
    ok(cynosure("principals", "create", name, "--credentials-file", "p.secret", "--data", str(server.data)))
    made = json.loads(Path("p.secret").read_text())
    Path("s.secret").write_text(made["clientSecret"])
    Path("wrong.secret").write_text("wrong")
    as_them = ("--url", server.url, "--client-id", made["clientId"], "--client-secret-file")

    denied = cynosure("principals", "list", *as_them, "s.secret")
    rotated = document(cynosure("principals", "rotate-credentials", name, "--json", *as_them, "s.secret"))
    wrong = cynosure("principals", "list", *as_them, "wrong.secret")
    unreachable = cynosure("whoami", *as_them, "s.secret", "--url", "http://127.0.0.1:1")

    assert (denied.code, wrong.code, unreachable.code) == (1, 1, 1)
    assert rotated["credentials"]["clientSecret"] != made["clientSecret"], "one's own may be rotated"
    assert "PRINCIPAL_LIST" in denied.err
    assert "gives no token" in wrong.err
    assert "cannot be reached" in unreachable.err
    assert "url: http://127.0.0.1:1\n" in unreachable.err, "which, where a profile or a variable chose it"
    assert "Traceback" not in denied.err + wrong.err + unreachable.err


def test_the_first_command_in_an_empty_directory_prints_one_document(
    cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CYNOSURE_BOOTSTRAP_CREDENTIALS")

    made = document(cynosure("catalogs", "create", "lake", "--json"))

    assert made["name"] == "lake"


def test_a_gateway_principal_that_was_there_says_that_no_file_was_written(cynosure: Cynosure) -> None:
    made = cynosure("gateway", "init", "--credentials-file", "one.json")
    again = cynosure("gateway", "init", "--credentials-file", "two.json")

    assert (made.code, again.code) == (0, 0)
    assert Path("one.json").exists()
    assert not Path("two.json").exists()
    assert "two.json was not written" in again.err
    assert "rotate-credentials cynosure-gateway --credentials-file two.json" in again.err


def test_a_catalog_elsewhere_needs_a_location(cynosure: Cynosure, server: CatalogServer) -> None:
    Path("root.secret").write_text(server.credential.secret)
    who = ("--client-id", server.credential.client_id, "--client-secret-file", "root.secret")

    refused = cynosure("catalogs", "create", "x", "--url", server.url, *who)

    assert refused.code == 1
    assert "--location" in refused.err


@pytest.mark.anyio
async def test_the_operator_socket_needs_no_token_and_the_port_does(server: CatalogServer) -> None:
    async with server.stranger() as http:
        answer = await http.get("/api/management/v1/principals")

    assert answer.status_code == httpx.codes.UNAUTHORIZED


HEAVY = (
    "asyncpg cryptography obstore prometheus_client pydantic rich uvicorn uvloop "
    "cynosure.api cynosure.catalog.directory cynosure.persistence.lifecycle"
)


def test_help_and_a_call_to_a_server_import_what_they_need_and_nothing_more(server: CatalogServer) -> None:
    program = (
        "import sys\n"
        "def show(): print(sorted(name for name in sys.modules if name in sys.argv[2].split() or\n"
        "                         name in ('httpx', 'cynosure.cli.catalogs', 'cynosure.cli.privileges')))\n"
        "import cynosure.cli.main as main\n"
        "show()\n"
        "main.app(['catalogs', 'list', '--json', '--data', sys.argv[1]], standalone_mode=False)\n"
        "show()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(server.data), HEAVY], capture_output=True, text=True, check=True
    )

    for_help, *listed, for_a_call = done.stdout.splitlines()
    assert isinstance(json.loads("".join(listed)), list)
    assert for_help == "[]"
    assert for_a_call == "['cynosure.cli.catalogs', 'httpx']"
