"""A log per key: clients send messages, poll them in order, and commit how far they have read.

    send{key, msg}               -> send_ok{offset}
    poll{offsets}                -> poll_ok{msgs: {key: [[offset, msg], ...]}}
    commit_offsets{offsets}      -> commit_offsets_ok
    list_committed_offsets{keys} -> list_committed_offsets_ok{offsets}

Each offset of a key holds one message; offsets may be sparse. A poll gives any number of messages
from the first one at or after the offset asked for, in order and without holes; it may leave a key
out. A committed offset says that everything up to and including it has been processed.
"""

from workloads.interface import Judge, Setting, Workload
from workloads.kafka.checker import AT_THE_END, check, explain, stops_early
from workloads.kafka.client import FinalPolls, KafkaClient, KafkaGenerator, Offsets
from workloads.mixes import Keys

DEFAULT_KEY_COUNT = 10
JUDGE = Judge(check, explain, at_end=AT_THE_END, stops_early=stops_early)


def build(setting: Setting) -> Workload:
    """The workload for these options: `key_count`, `max_writes_per_key`."""
    key_count = setting.options.get("key_count") or DEFAULT_KEY_COUNT
    random = setting.random
    keys = Keys(key_count, setting.options["max_writes_per_key"], random("kafka/keys"))
    offsets = Offsets()
    return Workload(
        generator=KafkaGenerator(
            keys, offsets, setting.concurrency, random("kafka"), crashes=random("kafka/crashes")
        ),
        final_generator=FinalPolls(offsets, setting.concurrency, random("kafka/final")),
        open_client=KafkaClient,
        judge=JUDGE,
        idempotent=frozenset(("assign",)),
    )
