"""What Apache Polaris serves beside the Iceberg protocol, below `/api/catalog/polaris/v1`.

- `generic_tables.py`   tables of other formats
- `notifications.py`    what owners of external tables tell; its path is beside those of tables
- `policies.py`         policies, and what they are attached to
- `routes.py`           all of them
"""
