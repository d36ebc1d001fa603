"""Hive Metastore 3.1.3, standalone, with a database of its own (Derby).

Its parts come from Maven's repository once, into the cache, and are held to the checksums here. It needs Java
and Maven, as Spark's tests do.

A maintainer must not break: this metastore listens on every interface, whatever it is told. So it runs in a
network of its own, and `hive_relay.py` brings it to a port on loopback.
"""

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from local_services.background import Background
from local_services.machine import HOME, fail, find_cache, run, say

VERSION = "3.1.3"
JAVA_PACKAGES = "default-jdk-headless maven"
INNER_PORT = 9083
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
STUB = "NoFiles"
"""`NoFiles.java`, a file system of any scheme."""


class Part(NamedTuple):
    """One artifact, and what it must be."""

    group: str
    name: str
    version: str
    sha256: str
    kind: str = "jar"
    classifier: str = ""

    @property
    def file(self) -> str:
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{tail}.{self.kind}"


METASTORE = Part(
    "org.apache.hive",
    "hive-standalone-metastore",
    VERSION,
    "83ddf76717eeb789091d845c069a631c25cad561c3d31ec0843a1ddf21f29409",
    "tar.gz",
    "bin",
)
PARTS = (
    METASTORE,
    Part(
        "org.apache.hadoop",
        "hadoop-client-api",
        "3.3.6",
        "f3d2347a6e1c6885d5bcfd4f60c3ac3810ec11068fc161e04329baabf412d963",
    ),
    Part(
        "org.apache.hadoop",
        "hadoop-client-runtime",
        "3.3.6",
        "15f01bc804294df06d2effc87de363a83cf589f50558bdbf48f72541ad8de854",
    ),
    Part(
        "org.apache.hadoop",
        "hadoop-hdfs",
        "3.3.6",
        "075fc48fd4ae299a58a9f26fb529671854689b215483b595fed4a56d77cb4c4d",
    ),
    Part(
        "commons-cli",
        "commons-cli",
        "1.2",
        "e7cd8951956d349b568b7ccfd4f5b2529a8c113e67c32b028f52ffda371259d9",
    ),
    Part(
        "commons-collections",
        "commons-collections",
        "3.2.2",
        "eeeae917917144a68a741d4c0dff66aa5c5c5fd85593ff217bced3fc8ca783b8",
    ),
    Part(
        "commons-io",
        "commons-io",
        "2.11.0",
        "961b2f6d87dbacc5d54abf45ab7a6e2495f89b75598962d8c723cea9bc210908",
    ),
    Part(
        "commons-logging",
        "commons-logging",
        "1.1.3",
        "70903f6fc82e9908c8da9f20443f61d90f0870a312642991fe8462a0b9391784",
    ),
    Part(
        "org.slf4j",
        "slf4j-api",
        "1.7.36",
        "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0",
    ),
)


class HiveMetastore:
    """One metastore."""

    name = "hive"

    def __init__(self) -> None:
        self._server = Background("Hive Metastore", HOME / self.name)

    def start(self) -> None:
        program = install()
        self._server.settle({}, ("thrift",))
        self._write_configuration()
        if not self._server.is_running():
            self._make_database(program)
        self._server.ensure(
            lambda: sys.executable,
            lambda: self._options(program),
            self._is_answering,
            files=[self._server.home / "conf" / "metastore-site.xml", self._relay],
        )

    def stop(self) -> None:
        self._server.stop()

    def status(self) -> str:
        return self._server.status("thrift", self._is_answering)

    def env(self) -> dict[str, str]:
        if not self._server.has_settings:
            fail("hive was never started", "Run: scripts/services start hive")
        return {"CYNOSURE_TEST_HIVE": f"thrift://127.0.0.1:{self._server.settings['thrift']}"}

    @property
    def _relay(self) -> Path:
        # A copy: every checkout has one of its own, and starts no other server for that.
        return self._server.home / "relay.py"

    def _options(self, program: Path) -> list[str]:
        # fmt: off
        return [
            str(self._relay), self._server.settings["thrift"], str(INNER_PORT),
            find_java("java"), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            f"-Dlog4j.configurationFile={self._server.home / 'conf' / 'log4j2.properties'}",
            "-cp", self._class_path(program),
            "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(INNER_PORT),
        ]
        # fmt: on

    def _class_path(self, program: Path) -> str:
        unpacked = program / f"apache-hive-metastore-{VERSION}-bin"
        return os.pathsep.join(
            (str(self._server.home / "conf"), str(program), f"{unpacked}/lib/*", f"{program}/lib/*")
        )

    def _write_configuration(self) -> None:
        home = self._server.home
        (home / "conf").mkdir(exist_ok=True)
        shutil.copyfile(Path(__file__).with_name("hive_relay.py"), self._relay)
        metastore = "org.apache.hadoop.hive.metastore"
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home}/database;create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "metastore.warehouse.dir": f"file://{home}/warehouse",
            "metastore.thrift.uris": f"thrift://127.0.0.1:{INNER_PORT}",
            "metastore.event.db.notification.api.auth": "false",
            "metastore.schema.verification": "true",
            # Their usual values are classes of Hive's engine, which is not here.
            "metastore.expression.proxy": f"{metastore}.DefaultPartitionExpressionProxy",
            "metastore.task.threads.always": f"{metastore}.events.EventCleanerTask",
            # Wherever tables are, the metastore has no business with their files.
            "fs.s3.impl": STUB,
            "fs.s3a.impl": STUB,
        }
        (home / "conf" / "metastore-site.xml").write_text(_configuration(settings))
        (home / "conf" / "core-site.xml").write_text(
            _configuration({name: value for name, value in settings.items() if name.startswith("fs.")})
        )
        (home / "conf" / "log4j2.properties").write_text(
            "rootLogger.level=WARN\nrootLogger.appenderRef.out.ref=out\n"
            "appender.out.type=Console\nappender.out.name=out\nappender.out.layout.type=PatternLayout\n"
        )

    def _make_database(self, program: Path) -> None:
        """Anew with every start: what tests leave is of no value, and would be listed for ever."""
        for left in ("database", "warehouse"):
            shutil.rmtree(self._server.home / left, ignore_errors=True)
        tool = "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool"
        # fmt: off
        command = [
            find_java("java"), "-cp", self._class_path(program), tool, "-dbType", "derby", "-initSchema",
        ]
        # fmt: on
        unpacked = program / f"apache-hive-metastore-{VERSION}-bin"
        run(command, {**os.environ, "METASTORE_HOME": str(unpacked)})

    def _is_answering(self) -> bool:
        return ask_thrift(int(self._server.settings["thrift"]))


def ask_thrift(port: int) -> bool:
    """Whether a metastore behind this port answers `get_all_databases`."""
    name = b"get_all_databases"
    asked = b"\x80\x01\x00\x01" + len(name).to_bytes(4, "big") + name + b"\x00\x00\x00\x01\x00"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.settimeout(5)
            connection.sendall(asked)
            return connection.recv(4) == b"\x80\x01\x00\x02"
    except OSError:
        return False


def _configuration(settings: dict[str, str]) -> str:
    rows = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    return f"<configuration>\n{rows}</configuration>\n"


def install() -> Path:
    """The folder with the program, filled if it is not in the cache."""
    home = find_cache("programs") / f"hive-metastore-{VERSION}"
    with (home.parent / ".hive-lock").open("w") as lock:
        # Whoever waited finds it installed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            _install(home)
    return home


def _install(home: Path) -> None:
    fresh = home.with_name(f"{home.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    (fresh / "pom.xml").write_text(_pom())
    maven = shutil.which("mvn") or fail("Maven: not installed", f"Run: apt-get install {JAVA_PACKAGES}")
    command = [maven, "-q", "-B", "-C", "-f", str(fresh / "pom.xml"), PLUGIN]
    say(f"fetching Hive Metastore {VERSION} with Maven; this takes a minute, once")
    try:
        run([*command, f"-DoutputDirectory={fresh / 'lib'}"], {**os.environ})
    except subprocess.CalledProcessError:
        fail("Hive Metastore cannot be installed", f"Run: {' '.join(command)}")
    for part in PARTS:
        found = hashlib.sha256((fresh / "lib" / part.file).read_bytes()).hexdigest()
        if found != part.sha256:
            fail(f"{part.file} is not what it must be", "Look into where Maven's packages come from.")
    archive = fresh / "lib" / METASTORE.file
    with tarfile.open(archive) as packed:
        packed.extractall(fresh, filter="data")
    archive.unlink()
    run(
        [find_java("javac"), "-cp", f"{fresh}/lib/*", "-d", str(fresh), str(_stub_source())],
        {**os.environ},
    )
    # Order: renamed last, so that an interrupted installation is never taken for the program.
    fresh.rename(home)


def _stub_source() -> Path:
    return Path(__file__).with_name(f"{STUB}.java")


def _pom() -> str:
    def describe(part: Part) -> str:
        kind = f"<classifier>{part.classifier}</classifier>" if part.classifier else ""
        return (
            f"<dependency><groupId>{part.group}</groupId><artifactId>{part.name}</artifactId>"
            f"<version>{part.version}</version>{kind}<type>{part.kind}</type><exclusions><exclusion>"
            "<groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
        )

    wanted = "".join(map(describe, PARTS))
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>cynosure</groupId><artifactId>hive-metastore</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{wanted}</dependencies></project>"
    )


def find_missing() -> str:
    """What it needs and is not here; empty when all is."""
    if sys.platform != "linux":
        return "needs Linux, for a network of its own"
    programs = {name: _look_for_java(name) for name in ("java", "javac")} | {"mvn": shutil.which("mvn")}
    missing = [name for name, found in programs.items() if not found]
    return f"needs {', '.join(missing)} (apt-get install {JAVA_PACKAGES})" if missing else ""


def find_java(program: str) -> str:
    """A program of the JDK in JAVA_HOME or on the PATH."""
    return _look_for_java(program) or fail(
        f"{program}: not installed", f"Run: apt-get install {JAVA_PACKAGES}"
    )


def _look_for_java(program: str) -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home, "bin", program))) if home else shutil.which(program)
