"""TABLE_PURGE: all files of a table that was dropped for good.

- `job.py`           the job: what is compared, asked and reported
- `instructions.py`  what an order may say besides
- `planning.py`      which files, in which order
- `plan.py`          the plan: files of batches in the table's own place, and a marker that it is whole
- `deleting.py`      batch after batch, with the lease checked before and a receipt after each
- `on_spark.py`      planning and deleting on Spark, for large tables

    listing + references ──► batches of 1,000 (in storage) ──► marker ──► catalog: purging ──► delete
                                                                             ▲
                                                    a later attempt goes on from here, by the receipts

A maintainer must not break: nothing is deleted before the catalog said *purging*; nothing outside of the
table's places is ever deleted; content goes first and the metadata file last.
"""
