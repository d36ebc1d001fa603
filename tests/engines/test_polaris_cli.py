"""The command line of Apache Polaris, unmodified, against a server of ours."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from cynosure.testing.catalog_server import CatalogServer
from tests.engines.polaris.install import install_polaris

RUN_MANY = Path(__file__).parent / "polaris" / "run_many.py"


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    def documents(self) -> list[dict[str, Any]]:
        """One line of JSON for each thing, as this command line prints them."""
        assert self.code == 0, self.err
        return [json.loads(line) for line in self.out.splitlines()]

    def names(self) -> set[str]:
        return {each["name"] for each in self.documents()}


Polaris = Callable[..., Ended]


def environment(tmp: Path) -> dict[str, str]:
    """Without anything that this machine's user has configured for it."""
    return {"PATH": os.environ["PATH"], "HOME": str(tmp)}


@pytest.fixture(scope="module")
def polaris(catalog_server: CatalogServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Polaris]:
    """Runs `polaris` as root with these arguments."""
    home = tmp_path_factory.mktemp("polaris")
    credential = catalog_server.credential
    command = [str(install_polaris()), str(RUN_MANY)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(home), cwd=home, **pipes) as process:
        assert process.stdin
        assert process.stdout
        given, answers = process.stdin, process.stdout

        def call(*arguments: str, who: tuple[str, str] | None = None) -> Ended:
            client_id, secret = who or (credential.client_id, credential.secret)
            login = ["--client-id", client_id, "--client-secret", secret, "--base-url", catalog_server.url]
            given.write(json.dumps([*login, *arguments]) + "\n")
            given.flush()
            return Ended(**json.loads(answers.readline()))

        yield call
        given.close()


@pytest.fixture
def name() -> str:
    return f"p{uuid.uuid4().hex[:12]}"


def ok(ended: Ended) -> str:
    assert ended.code == 0, ended.err
    return ended.out


def create_catalog(polaris: Polaris, server: CatalogServer, name: str) -> None:
    location = (server.warehouse / name).as_uri()
    ok(polaris("catalogs", "create", name, "--storage-type", "FILE", "--default-base-location", location))


def test_the_command_itself_runs_as_a_process(catalog_server: CatalogServer, tmp_path: Path) -> None:
    credential = catalog_server.credential
    command = [str(install_polaris().with_name("polaris")), "--base-url", catalog_server.url]
    command += ["--client-id", credential.client_id, "--client-secret", credential.secret]
    done = subprocess.run(
        [*command, "principals", "list"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "root" in {json.loads(line)["name"] for line in done.stdout.splitlines()}


def test_catalogs_in_files(polaris: Polaris, catalog_server: CatalogServer, name: str) -> None:
    create_catalog(polaris, catalog_server, name)
    listed = polaris("catalogs", "list")
    ok(polaris("catalogs", "update", name, "--set-property", "owner=me", "--set-property", "a=b"))
    ok(polaris("catalogs", "update", name, "--remove-property", "a"))
    [shown] = polaris("catalogs", "get", name).documents()
    twice = polaris(
        "catalogs", "create", name, "--storage-type", "FILE", "--default-base-location", "file:///x"
    )
    ok(polaris("catalogs", "delete", name))
    gone = polaris("catalogs", "get", name)

    assert name in listed.names()
    assert shown["properties"]["owner"] == "me"
    assert "a" not in shown["properties"]
    assert shown["entityVersion"] == 3
    assert twice.code == 1
    assert gone.code == 1
    assert "NotFoundException" in gone.err or "NoSuch" in gone.err


def test_catalogs_in_s3(polaris: Polaris, catalog_server: CatalogServer, s3_url: str, name: str) -> None:
    found = urlsplit(s3_url)
    location = f"s3:/{found.path}/{name}"
    options = ["--region", parse_qs(found.query)["region"][0], "--path-style-access"]
    options += ["--endpoint", f"http://{found.hostname}:{found.port}", "--no-sts"]
    options += ["--role-arn", "arn:aws:iam::000000000000:role/lake", "--allowed-location", f"{location}-more"]

    # This command line has no way to give keys; they are set afterwards, or a role is assumed.
    made = polaris(
        "catalogs", "create", name, "--storage-type", "S3", "--default-base-location", location, *options
    )

    [shown] = [each for each in polaris("catalogs", "list").documents() if each["name"] == name]
    assert made.code == 0, made.err
    assert shown["storageConfigInfo"]["pathStyleAccess"] is True
    assert shown["storageConfigInfo"]["roleArn"] == "arn:aws:iam::000000000000:role/lake"
    assert f"{location}-more" in shown["storageConfigInfo"]["allowedLocations"]


def test_principals_and_their_credentials(polaris: Polaris, name: str) -> None:
    [made] = polaris("principals", "create", name, "--property", "team=eu").documents()
    first = (made["clientId"], made["clientSecret"])
    [rotated] = polaris("principals", "rotate-credentials", name, who=first).documents()
    second = (rotated["clientId"], rotated["clientSecret"])
    ok(polaris("principals", "update", name, "--set-property", "team=us"))
    [shown] = polaris("principals", "get", name).documents()
    listed = polaris("principals", "list").names()
    refused = polaris("principals", "list", who=second)
    [reset] = polaris("principals", "reset", name).documents()
    out = polaris("principals", "get", name, who=second)
    [access] = polaris("principals", "access", name).documents()
    ok(polaris("principals", "delete", name))

    assert first[0] == second[0] == reset["clientId"]
    assert len({first[1], second[1], reset["clientSecret"]}) == 3
    assert shown["properties"] == {"team": "us"}
    assert name in listed
    assert refused.code == 1
    assert "PRINCIPAL_LIST" in refused.err
    assert out.code == 1
    assert access == {"principal": name, "principal_roles": []}


def test_roles_privileges_and_namespaces(polaris: Polaris, catalog_server: CatalogServer, name: str) -> None:
    role, rights = f"{name}-role", f"{name}-rights"
    create_catalog(polaris, catalog_server, name)
    [made] = polaris("principals", "create", name).documents()
    them = (made["clientId"], made["clientSecret"])
    for level in ("eu", "eu.orders"):
        ok(polaris("namespaces", "create", level, "--catalog", name, "--property", "k=v"))
    denied = polaris("namespaces", "list", "--catalog", name, who=them)

    ok(polaris("principal-roles", "create", role, "--property", "a=b"))
    ok(polaris("principal-roles", "grant", role, "--principal", name))
    ok(polaris("catalog-roles", "create", rights, "--catalog", name))
    ok(polaris("catalog-roles", "grant", rights, "--catalog", name, "--principal-role", role))
    granting = ("--catalog", name, "--catalog-role", rights)
    ok(polaris("privileges", "catalog", "grant", *granting, "NAMESPACE_LIST"))
    ok(polaris("privileges", "namespace", "grant", *granting, "--namespace", "eu.orders", "TABLE_LIST"))
    grants = polaris("privileges", "list", *granting).documents()
    namespaces = polaris("namespaces", "list", "--catalog", name, "--parent", "eu", who=them)
    [shown] = polaris("namespaces", "get", "eu.orders", "--catalog", name).documents()
    tables = polaris("tables", "list", "--catalog", name, "--namespace", "eu.orders", who=them)
    views = polaris("views", "list", "--catalog", name, "--namespace", "eu.orders", who=them)
    held = polaris("catalog-roles", "list", name, "--principal-role", role).names()
    assigned = polaris("principal-roles", "list", "--principal", name).names()
    ok(polaris("privileges", "catalog", "revoke", *granting, "NAMESPACE_LIST"))
    revoked = polaris("namespaces", "list", "--catalog", name, who=them)

    assert denied.code == 1
    assert "NAMESPACE_LIST" in denied.err
    assert {each["privilege"] for each in grants} == {"NAMESPACE_LIST", "TABLE_LIST"}
    assert "orders" in ok(namespaces)
    assert shown["properties"]["k"] == "v"
    assert tables.code == 0, tables.err
    assert views.code == 1
    assert held == {rights}
    assert assigned == {role}
    assert revoked.code == 1

    not_empty = polaris("catalogs", "delete", name)
    ok(polaris("catalog-roles", "revoke", rights, "--catalog", name, "--principal-role", role))
    ok(polaris("principal-roles", "revoke", role, "--principal", name))
    ok(polaris("catalog-roles", "delete", rights, "--catalog", name))
    ok(polaris("principal-roles", "delete", role))
    for level in ("eu.orders", "eu"):
        ok(polaris("namespaces", "delete", level, "--catalog", name))
    ok(polaris("catalogs", "delete", name))
    assert not_empty.code == 1


def test_policies(polaris: Polaris, catalog_server: CatalogServer, name: str, tmp_path: Path) -> None:
    create_catalog(polaris, catalog_server, name)
    ok(polaris("namespaces", "create", "eu", "--catalog", name))
    file = tmp_path / "policy.json"
    file.write_text('{"enable": true, "config": {"target_file_size_bytes": 134217728}}')
    place = ("--catalog", name, "--namespace", "eu")
    said = ("--policy-file", str(file), "--policy-description", "Keep files large.")

    ok(polaris("policies", "create", *place, *said, "--policy-type", "system.data-compaction", "compact"))
    onto = ("--attachment-type", "namespace", "--attachment-path", "eu")
    ok(polaris("policies", "attach", *place, *onto, "--parameters", "k=v", "compact"))
    ok(polaris("policies", "attach", *place, "--attachment-type", "catalog", "compact"))
    listed = ok(polaris("policies", "list", *place))
    [near] = polaris("policies", "list", *place, "--applicable").documents()
    [far] = polaris("policies", "list", "--catalog", name, "--applicable").documents()
    file.write_text('{"enable": false}')
    ok(polaris("policies", "update", *place, "--policy-file", str(file), "compact"))
    [shown] = polaris("policies", "get", *place, "compact").documents()
    refused = polaris("policies", "delete", *place, "compact")
    ok(polaris("policies", "detach", *place, *onto, "compact"))
    ok(polaris("policies", "delete", *place, "--detach-all", "compact"))
    gone = polaris("policies", "get", *place, "compact")

    assert "compact" in listed
    assert (near["name"], near["inherited"], near["namespace"]) == ("compact", False, ["eu"])
    assert (far["name"], far["version"]) == ("compact", 0)
    assert json.loads(shown["policy"]["content"]) == {"enable": False}
    assert shown["policy"]["version"] == 1
    assert refused.code == 1
    assert "PolicyInUseException" in refused.err
    assert gone.code == 1


def test_a_setup_file_is_applied_by_theirs_and_ours_understands_it(
    polaris: Polaris, catalog_server: CatalogServer, name: str, tmp_path: Path
) -> None:
    team = tmp_path / "team.yaml"
    team.write_text(
        f"""
principals:
  {name}: {{type: service, roles: [{name}-analysts]}}
principal_roles: [{name}-analysts]
catalogs:
  - name: {name}
    type: internal
    storage_type: file
    default_base_location: {(catalog_server.warehouse / name).as_uri()}
    roles:
      reader:
        assign_to: [{name}-analysts]
        privileges: {{catalog: [TABLE_LIST], namespace: {{eu.orders: [TABLE_READ_DATA]}}}}
    namespaces: [eu.orders, us]
    policies:
      compact:
        namespace: us
        type: system.data-compaction
        content: {{enable: true}}
        attach: [{{type: namespace, path: eu.orders}}, {{type: catalog}}]
"""
    )

    done = polaris("setup", "apply", str(team))
    ours = subprocess.run(
        [sys.executable, "-m", "cynosure", "setup", "apply", str(team), "--data", str(catalog_server.data)],
        capture_output=True,
        text=True,
        check=False,
    )
    grants = polaris("privileges", "list", "--catalog", name, "--catalog-role", "reader").documents()
    namespaces = polaris("namespaces", "list", "--catalog", name, "--parent", "eu").out

    assert done.code == 0, done.err
    assert ours.returncode == 0, ours.stderr
    assert (ours.stdout, "Nothing to change" in ours.stderr) == ("", True)
    assert {each["privilege"] for each in grants} == {"TABLE_LIST", "TABLE_READ_DATA"}
    assert "orders" in namespaces


def test_wrong_credentials_are_refused(polaris: Polaris, catalog_server: CatalogServer) -> None:
    wrong = polaris("catalogs", "list", who=(catalog_server.credential.client_id, "wrong"))
    unknown = polaris("catalogs", "list", who=("nobody", "wrong"))

    assert (wrong.code, unknown.code) == (1, 1)
    assert httpx.get(f"{catalog_server.url}/health/ready", trust_env=False).status_code == 200
