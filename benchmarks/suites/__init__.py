"""One module per suite, found by its name; `benchmarks.measure` says what a suite is."""
