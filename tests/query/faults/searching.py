"""Where what a governed scan knows could be written down, and the search for it there."""

import base64
import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil

from cynosure.testing.known_secrets import KNOWN
from tests.query.faults.scene import CARD, HIDDEN, SHOWN, FaultScene

_HOLDS_POLICIES = ("data",)
"""The catalog's own store: policies belong there."""
_HOLDS_SECRETS = ("gateway.json",)
"""What an administrator gives the gateway, mode 0600."""
_ARCHIVE = b"PK\3\4"
"""How a jar begins. Executors get Iceberg's as it was published, tens of megabytes, by other names too."""
_DRAWN = {"token": "a fragment's token", "salt": "a salt"}
_SCRATCH = re.compile(r"-Djava\.io\.tmpdir=(\S+)")


def spell(word: str | bytes) -> Iterator[bytes]:
    """A word as it may be written: as it is, wide, in hexadecimal digits, inside of base64."""
    plain = word.encode() if isinstance(word, str) else word
    yield plain
    yield b"".join(bytes((each, 0)) for each in plain)
    yield plain.hex().encode()
    for shift in range(3):
        # What stands before it in base64 shifts its letters; the ends depend on their neighbours.
        yield base64.b64encode(b"\0" * shift + plain)[4 if shift else 0 : -4]


class Search:
    """Everything that must not be found, and everywhere it could be."""

    def __init__(self, scene: FaultScene) -> None:
        self._scene = scene
        words = {SHOWN: "a constant of a row filter", HIDDEN: "a hidden value", CARD[:15]: "a masked value"}
        for session in scene.tokens.sessions:
            words |= {session.key_id: "a key", session.secret: "a secret key", session.token: "a session"}
        self._words = {written: kind for word, kind in words.items() for written in spell(word)}
        for line in scene.spied.read_text("ascii").splitlines():
            kind, word = line.split()
            drawn = bytes.fromhex(word) if kind == "salt" else word
            self._words |= dict.fromkeys(spell(drawn), _DRAWN[kind])
        self._searched: set[str] = set()
        self._pages: list[tuple[int, str]] = []

    def in_bytes(self, data: bytes, where: str) -> set[str]:
        """Kinds of what is found, with the place; never the thing itself."""
        found = {f"{kind} in {where}" for word, kind in self._words.items() if word in data}
        return found | {f"{leak.what} in {where}" for leak in KNOWN.search_bytes(data, where)}

    def everywhere(self) -> set[str]:
        """In files, processes and pages, now."""
        return self.in_files() | self.in_processes() | self.in_pages()

    def in_files(self) -> set[str]:
        """Logs, event log, folders of workers and drivers, what a gateway spills."""
        found: set[str] = set()
        for root in (self._scene.directory, *self._scratches()):
            for folder, names, files in os.walk(root):
                if folder == str(self._scene.directory):
                    names[:] = [name for name in names if name not in _HOLDS_POLICIES]
                for name in files:
                    path = Path(folder, name)
                    if name in _HOLDS_SECRETS or not path.is_file():
                        continue
                    # What is gone meanwhile is not written any more.
                    with contextlib.suppress(OSError):
                        data = path.read_bytes()
                        if not data.startswith(_ARCHIVE):
                            found |= self.in_bytes(data, str(path))
                            self._searched.add(str(path))
        return found

    def in_processes(self) -> set[str]:
        """Command lines and environments of the gateway, its driver, workers, executors, Python workers."""
        found: set[str] = set()
        for each in self._processes():
            for name in ("cmdline", "environ"):
                with contextlib.suppress(OSError, psutil.Error):
                    data = Path(f"/proc/{each.pid}/{name}").read_bytes()
                    found |= self.in_bytes(data, f"{name} of {each.name()}")
        return found

    def in_pages(self) -> set[str]:
        """Whatever the cluster and the driver answer over HTTP to whoever asks."""
        found: set[str] = set()
        for port in self._ports():
            for path in ("/", "/json/", "/environment/", "/SQL/", "/api/v1/applications"):
                with contextlib.suppress(httpx.HTTPError):
                    answer = httpx.get(f"http://127.0.0.1:{port}{path}", timeout=1, trust_env=False)
                    found |= self.in_bytes(answer.content, f"page {path} of port {port}")
                    self._pages.append((answer.status_code, answer.text))
        return found

    def check_pages(self) -> None:
        """The control: there was a page, and it tells of the driver whose secrets were searched."""
        started = [each for each in self._scene.events() if each["Event"] == "SparkListenerApplicationStart"]
        assert [text for status, text in self._pages if status == 200 and started[-1]["App ID"] in text]

    def check_shuffled(self) -> None:
        """The control: rows that executors wrote to disk were among what was searched."""
        local = str(self._scene.directory / "local-")
        assert [each for each in self._searched if each.startswith(local) and "/shuffle_" in each]

    def _processes(self) -> list[psutil.Process]:
        found = []
        for process in self._scene.query.processes.all:
            # Its secret to begin with comes to a catalog in its environment.
            if process is self._scene.query.catalog.process:
                continue
            with contextlib.suppress(psutil.Error):
                parent = psutil.Process(process.pid)
                found += [parent, *parent.children(recursive=True)]
        return found

    def _scratches(self) -> set[Path]:
        found = set()
        for each in self._processes():
            # One that has just ended has no command line.
            with contextlib.suppress(psutil.Error):
                if (said := _SCRATCH.search(" ".join(each.cmdline()))) is not None:
                    found.add(Path(said[1]))
        return found

    def _ports(self) -> set[int]:
        found = set()
        for process in self._scene.query.processes.all:
            if process.name.startswith(("master", "worker")) and process.is_running:
                for each in psutil.Process(process.pid).net_connections("tcp"):
                    if each.status == psutil.CONN_LISTEN:
                        found.add(each.laddr.port)
        return found
