"""What the persistence room counts."""

from cynosure.common.telemetry.metrics import Counter, Gauge

COMMITS = Counter("persistence", "commits", "Commits that moved a reference.")
REQUESTS = Counter("persistence", "committed_requests", "Requests contained in those commits.")
LOST_SWAPS = Counter("persistence", "lost_swaps", "Swaps lost to another writer; each was tried again.")
UNKNOWN_SWAPS = Counter(
    "persistence", "unknown_swaps", "Swaps whose answer was lost and had to be found out."
)
PREPARED_AGAIN = Counter("persistence", "prepared_again", "Requests prepared again because the state moved.")
TURNS = Counter("persistence", "turns", "Commits made while holding a turn at a contended reference.")
CACHE_BYTES = Gauge("persistence", "cache_bytes", "Estimated memory of decoded objects, over all workers.")
CACHE_HITS = Counter("persistence", "cache_hits", "Objects found in memory.")
CACHE_MISSES = Counter("persistence", "cache_misses", "Objects that had to be read from the database.")
HEAD_READS = Counter(
    "persistence", "head_reads", "Database reads of references, shared by concurrent readers."
)
