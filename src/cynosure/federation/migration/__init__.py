"""A federated catalog that becomes our own, where it is; or tables of it that go into another one of ours.

In place the catalog itself changes hands, with all it has: files stay, ids, grants and policies too. Into
another catalog tables go with their files, names and uuids, and the rest stays federated:

    begin     the mark: from now on only the migration changes the mirror, and nothing is passed on
    take      each table and view:  seen ─► set aside at the remote (renamed) ─► its last version here
    settle    what the mirror has and the remote has not is given up
              into another catalog: names and places are reserved there for all that was taken
    cede      only into another catalog: the places are that one's, for good
    give      only into another catalog: each is registered there, and given up here
    release   what was set aside is dropped at the remote, without a purge; or kept there, if so wished
    finish    the catalog is ours: one commit takes its connection away, and it takes writes
              into another catalog: the mark ends, and the catalog goes on as the remote's

Every step is bounded, writes down what it is about to do, and can be repeated: after a crash anywhere the
same requests go on from where it was. What is written down: `federation.handover`, `catalog.adopting`,
`catalog.ceding`; the way back: `cancel.py`.

A maintainer must not break: this order. A table is renamed at the remote *before* its last version is read,
so a writer there has either committed before, and that is read, or finds no table of this name; nothing is
lost. It is dropped there only *after* that version is durable here, and the catalog takes writes only after
all are dropped or set aside. Into another catalog, the giver refuses writes by its mark and then by its
claims (`catalog.ceding`) *before* the taker may use a place, and what was reserved there is nobody else's
from *before* that on. So at no moment can two catalogs write the same table, or one of them another's files.
"""
