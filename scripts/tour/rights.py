"""Who may do what: principals, roles, privileges, denials that explain themselves, the audit."""

import sys

from tour.stage import Tour

ENGINEERS = """
principal_roles: [engineers]
principals:
  eve: {roles: [engineers]}
catalogs:
  - name: main
    roles:
      writer:
        assign_to: [engineers]
        privileges:
          namespace: {shop: [TABLE_WRITE_DATA]}
"""


async def let_an_analyst_in(tour: Tour) -> None:
    """Let an analyst in who may read: principal, roles, privilege"""
    await tour.create_with("ann", "principals", "create", "ann")
    for command in (
        "principal-roles create analysts",
        "principal-roles grant analysts --principal ann",
        f"catalog-roles create reader --catalog {tour.catalog}",
        f"catalog-roles grant reader --catalog {tour.catalog} --principal-role analysts",
        f"privileges catalog grant TABLE_READ_DATA --catalog {tour.catalog} --catalog-role reader",
    ):
        await tour.cynosure(*command.split())


async def let_an_engineer_in(tour: Tour) -> None:
    """Let an engineer in who may write: the same, from a file"""
    (tour.data.parent / "engineers.yaml").write_text(ENGINEERS)
    tour.say(ENGINEERS.strip())
    await tour.create_with("eve", "setup", "apply", "engineers.yaml")
    again = await tour.cynosure("setup", "apply", "engineers.yaml")
    if "nothing" not in again.lower():
        sys.exit("demo: applying a setup again changed something")


async def use_rights(tour: Tour) -> None:
    """Both read; only one writes; a refusal names what is missing"""
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"owner": "eve"}}]}
    statuses = []
    for who in ("ann", "eve"):
        async with tour.client(who) as client:
            for answer in (await client.get(tour.table), await client.post(tour.table, json=change)):
                tour.show_answer(who, answer)
                statuses.append(answer.status_code)
    if statuses != [200, 403, 200, 200]:
        sys.exit(f"demo: rights are not what they should be: {statuses}")


async def explain_a_denial(tour: Tour) -> None:
    """Ask why, and take it from there"""
    denied = await tour.cynosure("explain", "ann", "commit-table", "main/shop.orders")
    await tour.cynosure("explain", "eve", "commit-table", "main/shop.orders")
    if "TABLE_WRITE_PROPERTIES" not in denied:
        sys.exit("demo: the explanation does not name the privilege")


async def take_rights_away(tour: Tour) -> None:
    """Take a right away: the next request is refused, with the same token"""
    await tour.cynosure("principal-roles", "revoke", "engineers", "--principal", "eve")
    async with tour.client("eve") as client:
        answer = await client.get(tour.table)
    tour.show_answer("eve", answer)
    if answer.status_code not in (401, 403):
        sys.exit("demo: a revoked role still counts")


async def look_at_the_audit(tour: Tour) -> None:
    """See what was done, and what was refused"""
    shown = await tour.cynosure("events", "tail", "--decision", "denied")
    if "ann" not in shown:
        sys.exit("demo: a denial left no trace")
