"""What the driver's process is given, for each kind of master."""

import os
import shutil
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from cynosure.common.delegated.settings import ClientTlsSettings, SparkSettings
from cynosure.common.errors import (
    BadInput,
    CynosureError,
    Forbidden,
    LeaseLost,
    Misconfigured,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.delegation.jobs.port import JobFailed, JobPostponed
from cynosure.delegation.spark.java_errors import to_error
from cynosure.delegation.spark.session import make_config
from cynosure.delegation.spark.table import literal, quote
from cynosure.spark.environment import make_environment
from cynosure.spark.trust import make_trust
from cynosure.spark.wire import hear, tell
from tests.engines.java import find_java

MASTERS = {
    "local[2]": True,
    "spark://127.0.0.1:7077": True,
    "spark://localhost:7077,127.0.0.1:7078": True,
    "spark://example.org:7077": False,
    "k8s://https://example.org:443": False,
}


@pytest.mark.parametrize("master", MASTERS)
def test_only_a_spark_of_this_machine_is_bound_to_it(master: str, tmp_path: Path):
    settings = SparkSettings(master=master)
    config = make_config(settings, jars=[], scratch=tmp_path)
    assert ("SPARK_LOCAL_IP" in make_environment({}, settings)) is MASTERS[master]
    assert (config.get("spark.driver.bindAddress") == "127.0.0.1") is MASTERS[master]


def test_credentials_do_not_get_through_and_the_rest_does():
    given = {
        "PATH": "/bin",
        "JAVA_HOME": "/java",
        "AWS_PROFILE": "prod",
        "AZURE_CLIENT_ID": "x",
        "GOOGLE_APPLICATION_CREDENTIALS": "x",
        "CYNOSURE_DELEGATION__SERVICE__CLIENT_SECRET": "x",
        "MY_API_TOKEN": "x",
        "DB_PASSWORD": "x",
        "SPARK_REMOTE": "sc://other",
        "CYNOSURE_CACHE_DIR": "/cache",
    }
    made = make_environment(given, SparkSettings())
    assert {name for name in given if name in made} == {"PATH", "JAVA_HOME", "CYNOSURE_CACHE_DIR"}
    assert made["AWS_EC2_METADATA_DISABLED"] == "true"
    assert made["AWS_SHARED_CREDENTIALS_FILE"] == os.devnull


def test_what_the_operator_says_wins_and_jars_are_added(tmp_path: Path):
    settings = SparkSettings(
        config={
            "spark.ui.enabled": "true",
            "spark.jars": "/own.jar",
            "spark.driver.extraJavaOptions": "-Dmine=1",
        },
        driver_memory=300 * 2**20,
    )
    config = make_config(settings, jars=[Path("/iceberg.jar")], scratch=tmp_path, java_options=("-Dtls=1",))
    assert config["spark.ui.enabled"] == "true"
    assert config["spark.jars"] == "/iceberg.jar,/own.jar"
    assert config["spark.driver.memory"] == "300m"
    assert config["spark.driver.extraJavaOptions"].split() == [
        f"-Djava.io.tmpdir={tmp_path}",
        "-XX:ReservedCodeCacheSize=512m",
        "-Dtls=1",
        "-Dmine=1",
    ]


def make_certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "own authority")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(7).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    paths = folder / "own.pem", folder / "own.key"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


def test_java_trusts_our_authority_beside_the_machines_own(tmp_path: Path):
    certificate, key = make_certificate(tmp_path)
    keytool = shutil.which("keytool") or str(Path(find_java()).with_name("keytool"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    options = make_trust(ClientTlsSettings(ca=certificate, certificate=certificate, key=key), scratch)

    named = dict(each.removeprefix("-Djavax.net.ssl.").split("=") for each in options)
    listed = {
        kind: subprocess.run(
            [keytool, "-list", "-keystore", named[kind], "-storepass", named[f"{kind}Password"]],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for kind in ("trustStore", "keyStore")
    }
    known = len(ssl.create_default_context().get_ca_certs())
    assert listed["trustStore"].count("trustedCertEntry") == known + 1
    assert listed["keyStore"].count("PrivateKeyEntry") == 1
    assert all((scratch / each).stat().st_mode & 0o077 == 0 for each in ("trust.p12", "identity.p12"))


def test_tls_files_that_are_none_are_refused(tmp_path: Path):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("nothing")
    with pytest.raises(Misconfigured, match="TLS files"):
        make_trust(ClientTlsSettings(ca=wrong), tmp_path)
    assert make_trust(ClientTlsSettings(), tmp_path) == ()


@pytest.mark.parametrize(
    "error",
    [
        JobFailed("It is so", code="X", status=409, fix="Do.", a=1),
        JobPostponed("It is so", code="Y", fix="Do.", a=1),
        BadInput("It is so", field="f", fix="Do."),
        LeaseLost("It is so"),
        OutcomeUnknown("It is so", a="b"),
        NotFound("It is so"),
        Misconfigured("It is so", fix="Do."),
    ],
)
def test_errors_cross_the_line_as_what_they_are(error: CynosureError):
    heard = hear(tell(error))
    assert type(heard) is type(error)
    assert str(heard).replace("'1'", "1") == str(error)
    assert (getattr(heard, "code", 0), getattr(heard, "status", 0)) == (
        getattr(error, "code", 0),
        getattr(error, "status", 0),
    )


class Java:
    """An exception of Java, as Py4J shows it."""

    def __init__(self, name: str, message: str, cause: "Java | None" = None) -> None:
        self._name, self._message, self._cause = name, message, cause

    def getClass(self) -> "Java":
        return self

    def getName(self) -> str:
        return self._name

    def getMessage(self) -> str:
        return self._message

    def getCause(self) -> "Java | None":
        return self._cause


@pytest.mark.parametrize(
    ("chain", "kind", "code"),
    [
        (
            ["o.a.i.exceptions.CommitStateUnknownException", "java.net.SocketTimeoutException"],
            OutcomeUnknown,
            "",
        ),
        (["o.a.s.SparkException", "o.a.i.exceptions.CommitFailedException"], JobPostponed, "COMMIT_CONFLICT"),
        (["o.a.i.exceptions.NoSuchTableException"], NotFound, ""),
        (["o.a.i.exceptions.ForbiddenException"], Forbidden, ""),
        (["java.lang.RuntimeException", "s.a.a.core.exception.SdkClientException"], Unavailable, ""),
        (["java.lang.IllegalArgumentException"], JobFailed, "SPARK_REFUSED"),
        (["java.lang.OutOfMemoryError"], JobPostponed, "SPARK_FAILED"),
    ],
)
def test_javas_errors_are_told_apart_by_their_causes(chain: list[str], kind: type, code: str):
    cause = None
    for name in reversed(chain):
        cause = Java(name, "s3.secret-access-key=hush said no", cause)
    raised = RuntimeError("as Python sees it")
    raised.java_exception = cause  # type: ignore[attr-defined]

    error = to_error(raised)

    assert type(error) is kind
    assert getattr(error, "code", "") == code
    assert "hush" not in str(error)


def test_names_and_values_reach_sql_as_they_are():
    assert quote("a`b.c") == "`a``b.c`"
    assert literal("it's a \\ b") == "'it\\'s a \\\\ b'"
    assert literal(True) == "true"
    assert literal({"a": "1", "b'": "2"}) == "map('a', '1', 'b\\'', '2')"
    assert literal(datetime(2026, 1, 2, 3, 4, 5, 6000, UTC)) == "TIMESTAMP '2026-01-02 03:04:05.006000'"
