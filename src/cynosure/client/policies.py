"""The policies of one catalog, as the command line uses them.

Must not break: lists come whole, however many pages the server cuts them into.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from cynosure.client.api import ApiClient, segment
from cynosure.client.catalog import Identifier, Namespace
from cynosure.client.changes import Keyed

_BASE: Final = "/api/catalog/polaris/v1"
_BETWEEN: Final = "\x1f"
_PAGE: Final = 1000


class PolicyTarget(Struct, frozen=True):
    """What a policy is attached to."""

    type: Literal["catalog", "namespace", "table-like"]
    path: tuple[str, ...] = ()


class Policy(Struct, frozen=True, rename="kebab", kw_only=True):
    """A policy."""

    name: str
    policy_type: str
    inheritable: bool = False
    version: int = 0
    description: str | None = None
    content: str | None = None


class ApplicablePolicy(Policy, frozen=True, rename="kebab", kw_only=True):
    """A policy that counts for something."""

    namespace: Namespace = ()
    inherited: bool = False


class _Loaded(Struct):
    policy: Policy


class _Page(Struct, rename="kebab"):
    identifiers: list[Identifier] = []
    applicable_policies: list[ApplicablePolicy] = []
    next_page_token: str | None = None


class PolicyApi(Keyed):
    """Policies of one catalog."""

    def __init__(self, api: ApiClient, catalog: str) -> None:
        super().__init__(api, catalog)
        self._base = f"{_BASE}/{segment(catalog)}"

    async def create(self, namespace: Namespace, policy: Policy) -> Policy:
        """Create a policy."""
        body = {"name": policy.name, "type": policy.policy_type, "content": policy.content}
        if policy.description is not None:
            body["description"] = policy.description
        return await self._save("POST", self._all(namespace), body)

    async def list_all(self, namespace: Namespace, policy_type: str = "") -> list[Identifier]:
        """The policies of a namespace, of one type where it is named."""
        query = {"policyType": policy_type} if policy_type else {}
        pages = await self._pages(self._all(namespace), query)
        return [each for page in pages for each in page.identifiers]

    async def load(self, namespace: Namespace, name: str) -> Policy:
        """One policy."""
        return (await self._api.request("GET", self._of(namespace, name))).decode(_Loaded).policy

    async def update(
        self,
        namespace: Namespace,
        name: str,
        *,
        content: str | None = None,
        description: str | None = None,
        current_version: int | None = None,
    ) -> Policy:
        """Change what a policy says; what is left out stays."""
        given = {
            "content": content,
            "description": description,
            "current-policy-version": current_version,
        }
        body = {field: value for field, value in given.items() if value is not None}
        return await self._save("PUT", self._of(namespace, name), body)

    async def drop(self, namespace: Namespace, name: str, *, detach_all: bool = False) -> None:
        """Drop a policy."""
        query = {"detach-all": "true"} if detach_all else {}
        await self._change("DELETE", self._of(namespace, name), query=query)

    async def attach(
        self, namespace: Namespace, name: str, target: PolicyTarget, parameters: Mapping[str, str]
    ) -> None:
        """Attach a policy to something."""
        body = {"target": target, "parameters": parameters}
        await self._change("PUT", f"{self._of(namespace, name)}/mappings", body=body)

    async def detach(self, namespace: Namespace, name: str, target: PolicyTarget) -> None:
        """Detach a policy from something."""
        await self._change("POST", f"{self._of(namespace, name)}/mappings", body={"target": target})

    async def list_applicable(self, target: PolicyTarget, policy_type: str = "") -> list[ApplicablePolicy]:
        """The policies that count for something, of one type where it is named."""
        query = {"policyType": policy_type} if policy_type else {}
        match target.type:
            case "namespace":
                query["namespace"] = _BETWEEN.join(target.path)
            case "table-like":
                query |= {"namespace": _BETWEEN.join(target.path[:-1]), "target-name": target.path[-1]}
        pages = await self._pages(f"{self._base}/applicable-policies", query)
        return [each for page in pages for each in page.applicable_policies]

    def _all(self, namespace: Namespace) -> str:
        return f"{self._base}/namespaces/{segment(_BETWEEN.join(namespace))}/policies"

    def _of(self, namespace: Namespace, name: str) -> str:
        return f"{self._all(namespace)}/{segment(name)}"

    async def _save(self, method: str, path: str, body: object) -> Policy:
        return (await self._change(method, path, body=body)).decode(_Loaded).policy

    async def _pages(self, path: str, query: Mapping[str, str]) -> list[_Page]:
        pages: list[_Page] = []
        asked = {**query, "pageSize": str(_PAGE), "pageToken": ""}
        while True:
            pages.append((await self._api.request("GET", path, query=asked)).decode(_Page))
            token = pages[-1].next_page_token
            if not token:
                return pages
            asked = {**asked, "pageToken": token}
