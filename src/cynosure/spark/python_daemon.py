"""What Spark's executors fork their Python workers from: PySpark's own daemon, made ready for our tasks.

Before each task PySpark looks whether anything changed in what Python imports from. Among that is Spark's own
jar, with its thousands of classes, and its directory is read again for each package: 0.2 s of CPU, ten times
of what a task of ours needs. So archives are taken for what they are. And what our tasks import is imported
here, once, rather than in each worker.

A maintainer must not break: nothing here starts a thread or writes to standard output: workers are forked
from this process, and Java reads its port from there.
"""

import gc
import zipimport
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module


def serve(modules: Iterable[str]) -> None:
    """Serve Java, with these modules at hand. Called by the module that Java starts."""
    # What Spark brings meanwhile are files with names of their own: nobody changes an archive.
    zipimport.zipimporter.invalidate_caches = _keep  # type: ignore[method-assign, assignment]
    for module in modules:
        # A task that needs it will say so.
        with suppress(ImportError):
            import_module(module)
    # Collected after every task: not what all of them share.
    gc.freeze()
    from pyspark.daemon import manager  # noqa: PLC0415 - an extra; it reads its arguments when imported

    manager()  # type: ignore[no-untyped-call]


def _keep(_: zipimport.zipimporter) -> None:
    pass
