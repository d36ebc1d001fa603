"""The description that is served, held against the appendix of the proposal."""

import pytest

from cynosure.common.delegated.vocabulary import TYPE_ALIASES
from tests.delegation.http.conftest import SYNC, World

pytestmark = pytest.mark.anyio

# Transcribed from the appendix: what each schema has, and what of it must be there.
ORDERED = {
    "TaskPayload": ({"common_payload", "operation_parameters"},) * 2,
    "CommonPayload": (
        {"operation_type", "request_timestamp_utc", "realm_identifier", "polaris_correlation_id"},
        {"operation_type", "realm_identifier"},
    ),
    "TableIdentity": ({"table_entity_id", "catalog_name", "namespace_levels", "table_name"},) * 2,
}
OPERATION = {"table_identity", "metadata_location", "metadata", "properties"}
"""`config` is accepted as well, and described nowhere: nobody should send credentials."""
ANSWERED = {
    "TaskSuccessResponse": (
        {"delegation_task_id", "status", "message", "execution_result"},
        {"delegation_task_id"},
    ),
    "ErrorResponse": (
        {"delegation_task_id", "status", "error_code", "message", "details"},
        {"error_code", "message"},
    ),
}
STATUSES = {"200", "400", "401", "403", "409", "500", "502"}


async def test_the_description_has_all_that_the_appendix_has(world: World) -> None:
    async with world.client() as http:
        described = (await http.get("/openapi.json", headers={"Authorization": ""})).json()

    operation = described["paths"][SYNC]["post"]
    assert operation["operationId"] == "executeSynchronousTask"
    assert operation["tags"] == ["Task Execution API"]
    assert operation["responses"].keys() >= STATUSES
    assert operation["requestBody"]["required"] is True
    assert {"OAuth2", "BearerAuth"} <= {name for each in operation["security"] for name in each}
    schemes = described["components"]["securitySchemes"]
    assert "execute_tasks" in schemes["OAuth2"]["flows"]["clientCredentials"]["scopes"]
    assert schemes["BearerAuth"] == {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    schemas = described["components"]["schemas"]
    for name, (has, requires) in {**ORDERED, **ANSWERED}.items():
        assert schemas[name]["properties"].keys() >= has, name
        assert set(schemas[name]["required"]) >= requires, name
    for name, (_, requires) in ORDERED.items():
        # Nothing beyond the proposal is demanded of who gives an order.
        assert set(schemas[name]["required"]) == requires, name
    assert schemas["OperationParameters"]["properties"].keys() >= OPERATION
    assert schemas["OperationParameters"]["required"] == ["table_identity"]
    assert "SYNCHRONOUS_TABLE_PURGE" in TYPE_ALIASES
    paths = {path.removeprefix("/delegation-service/api") for path in described["paths"]}
    assert {"/v1/tasks/execute/synchronous", "/v1/tasks", "/v1/tasks/{task_id}"} <= paths


async def test_every_answer_of_400_and_above_has_the_shape_of_the_proposal(world: World) -> None:
    async with world.client() as http:
        described = (await http.get("/openapi.json")).json()

    for answer in described["components"]["responses"].values():
        schema = answer["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/ErrorResponse"}
