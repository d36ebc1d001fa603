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
- `delegation.py`, `delegation_wiring.py`   the delegation service: its process, and its classes put together;
                   `delegation_child.py` its entry, `delegation_settings.py` what must fit together,
                   `delegation_principal.py` what it may do in catalogs
- `service_principal.py`, `service_credentials.py`   who a service is in the catalog
- `delegated_executor.py`, `up_delegation.py`   a service as the catalog reaches it; one beside the catalog
- `gateway.py`, `gateway_wiring.py`, `gateway_engines.py`   the gateway for SQL: its process, its classes put
                   together, its engines; `gateway_child.py` its entry, `gateway_settings.py` what must fit
                   together, `gateway_address.py` where commands of this machine find it, `up_gateway.py` one
                   beside the catalog
- `service_process.py`, `up_service.py`, `safe_settings.py`   what services beside the catalog share
- `listen.py`, `protocol.py`, `corked.py`, `tls.py`, `certs.py`, `data_dir.py`   sockets, connections, TLS,
                   certificates, the data directory

A maintainer must not break: no process started here outlives the one that started it.
"""
