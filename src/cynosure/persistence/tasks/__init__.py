"""Tasks of which at most one instance runs, however many servers there are.

- `task.py`         what a task is: its name, how often, what to do, how to retry
- `row.py`          the task's updateable object: lease, due time, progress, recent runs
- `running.py`      one run from within: `TaskRun.check`, `TaskRun.save`, the lease that is kept meanwhile
- `coordinated.py`  `CoordinatedTasks`: claim, run, record; take over what a dead process left
- `loop.py`         `TaskLoop` runs registered tasks in the background

Promises: two runs of one task overlap only if clocks differ by more than the skew margin; work left by a
dead process is taken over with its saved progress. A task may be run *again* after it succeeded (when the
record of its success was lost), so its work must be safe to repeat; for rare, not for frequent work.
"""

from cynosure.persistence.tasks.coordinated import CoordinatedTasks, TaskStatus
from cynosure.persistence.tasks.loop import TaskLoop
from cynosure.persistence.tasks.row import TASK, RunRecord
from cynosure.persistence.tasks.running import TaskRun
from cynosure.persistence.tasks.task import Retry, Task

__all__ = ["TASK", "CoordinatedTasks", "Retry", "RunRecord", "Task", "TaskLoop", "TaskRun", "TaskStatus"]
