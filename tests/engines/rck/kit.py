"""Run Iceberg's REST compatibility kit in one JVM and read what each of its tests did.

A maintainer must not break: a run that ends early is an error, never a short list of results.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.engines.java import ToolFailed, find_java
from tests.engines.rck.build import build_class_path


@dataclass(frozen=True)
class KitResult:
    """What one test of the kit did, in one or both modes."""

    kit: str
    """`tables` or `views`."""
    test: str
    variant: str
    """Distinguishes the runs of a parametrised test; usually empty."""
    modes: tuple[str, ...]
    """`stock` and `strict`: both when the test does not depend on the difference."""
    outcome: str
    """`passed`, `failed` or `skipped`."""
    reason: str
    trace: str
    seconds: float

    @property
    def name(self) -> str:
        return f"{self.kit}.{self.test}{f' {self.variant}' if self.variant else ''}"


def run_kit(
    uri: str, properties: Mapping[str, str], *, is_strict: bool = False, only: str = ""
) -> Iterator[KitResult]:
    """Run the kit against a REST catalog; results arrive as tests end.

    `properties` are those of Iceberg's REST client, and the kit's own switches (`rck.…`).
    `only` is a regular expression that a test's name must contain.
    """
    command = [
        find_java(),
        # Short-lived and beside other work: late compilation and parallel collection do not pay off.
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xmx1g",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
        *(f"-D{name}={value}" for name, value in {"uri": uri, **properties}.items()),
        *("-cp", build_class_path(), "org.apache.iceberg.rest.KitRun"),
        "strict" if is_strict else "stock",
        f".*(?:{only}).*",
    ]
    # The kit takes CATALOG_* variables as properties; what this machine happens to have must not count.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CATALOG_")}
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(
            command, cwd=Path(folder), env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    found = json.loads(line)
                    yield KitResult(**{**found, "modes": tuple(found["modes"])})
            except BaseException:  # also when the caller stops reading
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            raise ToolFailed(f"the kit ended with exit code {process.returncode}\n{errors.read()[-4000:]}")
