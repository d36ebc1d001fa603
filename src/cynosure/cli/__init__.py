"""The command line: `cynosure --help`.

- `main.py`       the commands, their groups, and how errors end; `lazy.py` imports a group when it is used
- `output.py`     errors, progress and results, for people and for programs
- `flags.py`      which server a command means, as flags, environment and profiles say; `remote.py` gives them
  to commands
- `transport.py`  the way there: network, operator socket, or in process; all speak HTTP
- `operator.py`   commands that only operators have: in the server when there is one, otherwise here
- `options.py`, `names.py`, `credentials.py`, `roles_output.py`   what several commands share
- `sql.py`, `sql_repl/`   `cynosure sql`: statements, formats, the prompt
- `setup/`        a whole installation from a file
- all others      the commands themselves, a file for each group

A maintainer must not break: modules here import nothing heavy at the top, because every call of the
command line pays for it; what a command needs it imports when it runs.
"""
