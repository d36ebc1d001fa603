"""Changes of a federated catalog: what a client asks for is done by the remote first, then seen here.

- `write.py`       what each change consists of; `carrying.py` the order in which its parts are done
- `asking.py`      the question to the remote itself: keys, lost answers, what was asked before a crash
- `asked.py`       what a remote was asked for and has not answered yet: the index `asked`
- `looking.py`     the mirror, brought up to what the remote has now
- `outcomes.py`    whether a change of a table is in what a remote has
- `kinds.py`       tables and views, as far as they are changed alike
- one file per operation, each with the parameters and answers of the native one

A maintainer must not break: nothing is sent to a remote before the caller was found to have the right to all
of it, on the mirror as it is; and what a remote may have done is never told as refused.
"""
