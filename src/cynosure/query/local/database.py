"""DuckDB, locked down: it reaches what is registered with it, and nothing else.

One database for all local statements of the process, because its memory limit is theirs together; each
statement has a connection of its own, whose relations no other one sees.

A maintainer must not break: everything is set before the first statement and then locked: no files, no
network, no extensions, no settings, no variables of Python.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

from cynosure.query.local.exact import Function
from cynosure.query.local.typed import OutsideSubset
from cynosure.query.settings import QuerySettings

_LOCKED: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "allow_persistent_secrets": "false",
    "enable_external_file_cache": "false",
    "python_enable_replacements": "false",
    "python_scan_all_frames": "false",
    "max_expression_depth": "1000",
    # A division by zero is an error of ours; infinity is what Spark gives for what overflows.
    "ieee_floating_point_ops": "true",
    "integer_division": "false",
    "scalar_subquery_error_on_multiple_rows": "true",
    "preserve_insertion_order": "false",
    # Conditions are evaluated in the order they are written in: `b <> 0 AND a / b > 1`.
    "disabled_optimizers": "reorder_filter",
}
_PREFIX: Final = "local-"
_MAX_FUNCTIONS: Final = 2_000
"""They stay until the database is closed, and there is one for each pair of types that is divided."""


class Database:
    """One DuckDB in memory."""

    def __init__(self, settings: QuerySettings, spill_dir: Path) -> None:
        import duckdb  # noqa: PLC0415 - an extra

        self._spill = _make_spill_dir(spill_dir) if settings.spill_to_disk else None
        config: dict[str, Any] = {
            **_LOCKED,
            "memory_limit": f"{settings.local.memory_limit // 2**10}KiB",
            "threads": str(settings.local.threads or os.cpu_count() or 1),
            "temp_directory": str(self._spill or ""),
        }
        self._root: Any = duckdb.connect(":memory:", config=config)
        # In this order: a directory to spill to cannot be set once there is no access.
        self._root.execute("SET enable_external_access = false")
        self._root.execute("SET lock_configuration = true")
        self._functions: set[str] = set()
        self._lock = Lock()

    def connect(self, functions: Iterable[Function]) -> Any:
        """A connection with these functions; close it. `OutsideSubset` when there are too many in all."""
        with self._lock:
            missing = [each for each in functions if each.name not in self._functions]
            if len(self._functions) + len(missing) > _MAX_FUNCTIONS:
                raise OutsideSubset("divisions of too many different types")
            for each in missing:
                self._root.create_function(
                    each.name, _bare(each), list(each.arguments), each.result, type="arrow"
                )
                self._functions.add(each.name)
            return self._root.cursor()

    def used_bytes(self) -> int:
        """Memory that all statements use now."""
        with self._lock:
            [(used,)] = self._root.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
        return int(used or 0)

    def close(self) -> None:
        """Nothing of it remains, in memory or on disk."""
        self._root.close()
        if self._spill is not None:
            shutil.rmtree(self._spill, ignore_errors=True)


def _bare(function: Function) -> Callable[..., Any]:
    """Without annotations, which DuckDB would evaluate, and with as many arguments as it counts."""
    call = function.call
    if len(function.arguments) == 1:
        return lambda one: call(one)  # noqa: PLW0108 - see above
    return lambda one, other: call(one, other)  # noqa: PLW0108


def _make_spill_dir(parent: Path) -> Path:
    """A directory of this process below it. Those of processes that are gone are removed."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in parent.glob(f"{_PREFIX}*"):
        owner = left.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdigit() and not _is_running(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))


def _is_running(pid: int) -> bool:
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True
