"""Restrictions from the command line: made, attached, and explained."""

from tests.cli.running import Cynosure

IN_EU = ("--catalog", "lake", "--namespace", "eu")
MASK = (
    r'{"enable":true,"columns":{"ssn":"show-last-4","\u001b[2J":"show-first-4"},'
    '"except-roles":["service_admin"]}'
)


def test_an_explanation_says_what_somebody_sees_and_harms_no_terminal(cynosure: Cynosure) -> None:
    for arguments in (
        ("catalogs", "create", "lake"),
        ("namespaces", "create", "eu", "--catalog", "lake"),
        ("generic-tables", "create", "events", "--format", "csv", *IN_EU),
        ("principals", "create", "ann", "--credentials-file", "ann.secret"),
        ("principal-roles", "create", "analyst"),
        ("principal-roles", "grant", "analyst", "--principal", "ann"),
        ("catalog-roles", "create", "reader", "--catalog", "lake"),
        ("catalog-roles", "grant", "reader", "--catalog", "lake", "--principal-role", "analyst"),
        (
            "privileges",
            "catalog",
            "grant",
            "TABLE_READ_DATA",
            "--catalog",
            "lake",
            "--catalog-role",
            "reader",
        ),
        ("policies", "create", "hide", "--type", "cynosure.column-mask", "--content", MASK, *IN_EU),
        ("policies", "attach", "hide", *IN_EU, "--on-catalog"),
    ):
        ended = cynosure(*arguments)
        assert ended.code == 0, ended.err

    shown = cynosure("explain", "ann", "load-generic-table", "lake/eu.events")
    refused = cynosure("explain", "ann", "load-generic-table-to-read", "lake/eu.events", "--exit-code")

    assert "ann MAY load-generic-table" in shown.out
    assert r"sees ssn as show-last-4, \x1b[2J as show-first-4 (policy eu.hide on catalog)" in shown.out
    assert refused.code == 1
    assert "because: Read it through a trusted engine: policy eu.hide" in refused.out
    attach = cynosure("explain", "ann", "attach-restriction-to-namespace", "lake/eu.hide", "lake/eu")
    commands = [line.split()[1:5] for line in attach.out.splitlines() if line.startswith("  cynosure ")]
    assert commands == [
        ["privileges", "policy", "grant", "CATALOG_MANAGE_ACCESS"],
        ["privileges", "namespace", "grant", "CATALOG_MANAGE_ACCESS"],
    ]
