"""What this project and those who extend it test with; production code never imports it.

Kits state what an implementation must do (`backend_kit`, `fileio_kit`, `authorizer_kit`, `task_store_kit`,
`remote_kit`, `pointer_kit`), `sim` runs production code under one seed, `harness` runs real processes and
breaks real connections, `storm` and `catalog_storm` kill them. `small_store`, `small_catalog`,
`small_delegation` and `small_broker` are whole ones in one process, `catalog_server` and `delegation_server`
are real ones.
"""
