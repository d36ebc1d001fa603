"""Build the runner of the compatibility kit, and the reference server beside it, once per version of both.

A maintainer must not break: a finished build is found without any tool but the file system, so that tests
run offline after the first time.
"""

import hashlib
import shutil
import tempfile
from pathlib import Path

from tests.engines.java import find_cache, find_java, lock_cache, resolve_class_path, run_tool

HERE = Path(__file__).parent
SOURCES = sorted((HERE / "java").glob("*.java"))


def build_class_path() -> str:
    """The class path of `KitRun` and `ReferenceServer`; fetches and compiles when it is not there."""
    cache = find_cache("rck")
    target = cache / _fingerprint()
    with lock_cache(cache):
        if not (class_path := _read_finished(target)):
            shutil.rmtree(target, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=cache) as temporary:
                _build(Path(temporary))
                Path(temporary, "made").rename(target)
            class_path = _read_finished(target)
    assert class_path, f"the build in {target} misses jars that Maven has just fetched"
    return class_path


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in [HERE / "pom.xml", *SOURCES]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _read_finished(target: Path) -> str | None:
    listing = target / "class-path"
    if not listing.exists():
        return None
    jars = listing.read_text().strip()
    # Somebody may have emptied Maven's repository since.
    return f"{target / 'classes'}:{jars}" if all(map(Path.exists, map(Path, jars.split(":")))) else None


def _build(temporary: Path) -> None:
    made = temporary / "made"
    (made / "classes").mkdir(parents=True)
    # Maven looks for a parent pom above the pom; a copy has none by chance.
    shutil.copy(HERE / "pom.xml", temporary / "pom.xml")
    resolve_class_path(temporary / "pom.xml", made / "class-path")
    jars = (made / "class-path").read_text().strip()
    compiler = [find_java("javac"), "--release", "17", "-Xlint:-options", "-d", str(made / "classes")]
    run_tool([*compiler, "-cp", jars, *map(str, SOURCES)])


if __name__ == "__main__":
    print(build_class_path())
