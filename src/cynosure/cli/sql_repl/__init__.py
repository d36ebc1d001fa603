"""What `cynosure sql` is made of.

- `splitting.py`   text into statements; what is left over is not complete yet
- `connecting.py`  the gateway and the catalog that the flags mean
- `running.py`     one statement: progress, pages, ctrl-C
- `writers.py`     rows in the formats that are streamed; `tables.py` those for people
- `errors.py`      errors with a caret under their place
- `using.py`       USE, which the command line does itself
- `repl.py`        the prompt; `completing.py` what it proposes

A maintainer must not break: rows are written as their pages come, so that the memory does not depend on how
many there are (but for `table`, which is cut); and text of rows reaches a terminal escaped.
"""
