"""Where everything is put together: settings, wiring, processes.

The only room that knows every class. Read in this order:

- `settings.py`    everything that can be set
- `wiring.py`      all classes put together; `operator_commands.py` what every service can be asked, the other
                   `…_commands.py` what operators can ask of store, catalogs and tables
- `catalog_storage.py`, `first_catalog.py`   where catalogs keep local files; what `up` begins with
- `lifespan.py`    one serving process from start to end
- `run.py`         `serve`: one process, or workers on one socket; `catalog.py` and `worker.py` are the
                   entries of child processes, `child.py` how they end
- `up.py`, `supervisor.py`, `link.py`   child processes kept alive, and ended with their parent
- `listen.py`, `protocol.py`, `corked.py`, `tls.py`, `certs.py`, `data_dir.py`   sockets, connections, TLS,
                   certificates, the data directory

A maintainer must not break: no process started here outlives the one that started it.
"""
