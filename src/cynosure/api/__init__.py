"""HTTP at its edge: plain ASGI, typed by msgspec structs, described by what is served.

Read in this order:

- `messages.py`     what a handler gets and gives
- `router.py`       `Route`, and dispatch from method and raw path
- `gate.py`         who may come in; `token_gate.py` with a token, `operator_gate.py` through the socket
- `realm.py`, `oauth.py`   which realm a request is about; how clients get tokens
- `errors.py`       the one map from our error tree to HTTP
- `decode.py`, `percent.py`   bodies, query strings and path segments into values
- `middleware/`     telemetry, errors, limits
- `openapi.py`      OpenAPI 3.1, generated from the routes
- `app.py`          all of it as one ASGI application
- `health.py`, `metrics.py`, `operator.py`   the operations every service has
- `iceberg/`        the Iceberg REST protocol; `cynosure/` what we serve beside it
- `management/`     catalogs, principals, roles and grants, as Apache Polaris has them
- `polaris/`        its other APIs
- `delegation/`     the delegation service, which is a process and an application of its own
- `query/`          governed SQL: the gateway, another one

A maintainer must not break: an endpoint parses, calls one operation, encodes. No error becomes a status
anywhere but in `errors.py`.
"""
