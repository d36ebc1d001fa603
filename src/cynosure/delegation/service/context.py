"""What all operations on tasks have."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cynosure.common.clock import Clock
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.jobs.port import Job
from cynosure.delegation.service.changes import Changes
from cynosure.delegation.store.port import TaskStore


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The tasks of one realm, as one process sees them."""

    store: TaskStore
    realm: str
    clock: Clock
    jobs: Mapping[TaskType, Job]
    """What is done here; orders of other kinds are refused."""
    settings: DelegationSettings
    changes: Changes = field(default_factory=Changes)
