"""What this project and those who extend it test with; production code never imports it.

Kits state what an implementation must do (`backend_kit`), `sim` runs production code under one seed,
`harness` runs real processes and breaks real connections.
"""
