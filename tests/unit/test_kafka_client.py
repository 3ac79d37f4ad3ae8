"""The kafka client as a conversation: each step is a request it makes and the answer it gets."""

import pytest

from runs.history import Op
from workloads.interface import CrashClient, MalformedReply, RpcError
from workloads.kafka.client import KafkaClient


class Conversation:
    """One client of n0; `perform` plays an operation against scripted answers."""

    def __init__(self) -> None:
        self.client = KafkaClient("n0")

    def perform(self, f, value=None, *, answers=(), **extra):
        """The requests that were made, and the completed value."""
        steps = self.client.invoke(Op(0, 0, "invoke", 0, f, value, extra))
        requests, answers = [], list(answers)
        try:
            rpc = next(steps)
            while True:
                assert rpc.dest == "n0"
                requests.append(rpc.body)
                answer = answers.pop(0)
                raises = isinstance(answer, Exception)
                rpc = steps.throw(answer) if raises else steps.send(answer)
        except StopIteration as done:
            assert not answers
            return requests, done.value

    def poll(self, messages, commit=True):
        answers = [{"type": "poll_ok", "msgs": messages, "in_reply_to": 1}]
        if any(messages.values()):
            answers.append(commit if commit is not True else {"type": "commit_offsets_ok"})
        return self.perform("poll", [["poll"]], answers=answers)

    def assign(self, keys, committed):
        answer = {"type": "list_committed_offsets_ok", "offsets": committed}
        return self.perform("assign", keys, answers=[answer])


@pytest.fixture
def talk():
    return Conversation()


def test_send(talk):
    requests, value = talk.perform(
        "send", [["send", "k", 7]], answers=[{"type": "send_ok", "offset": 3}]
    )
    assert requests == [{"type": "send", "key": "k", "msg": 7}]
    assert value == [["send", "k", [3, 7]]]


def test_poll_moves_on_and_commits(talk):
    talk.assign(["a", "b"], {"a": 4})
    requests, value = talk.poll({"a": [[4, "x"], [9, "y"]]})
    assert requests == [
        {"type": "poll", "offsets": {"a": 4, "b": 0}},
        {"type": "commit_offsets", "offsets": {"a": 9}},
    ]
    assert value == [["poll", {"a": [[4, "x"], [9, "y"]]}]]
    requests, value = talk.poll({})
    assert requests == [{"type": "poll", "offsets": {"a": 10, "b": 0}}]
    assert value == [["poll", {}]]


def test_a_poll_never_moves_back(talk):
    talk.assign(["a"], {"a": 4})
    talk.poll({"a": [[1, "old"]]})
    assert talk.poll({})[0][0]["offsets"] == {"a": 4}


def test_an_empty_list_is_read_as_nothing(talk):
    talk.assign(["a"], {"a": 4})
    requests, _ = talk.poll({"a": []})
    assert len(requests) == 1
    assert talk.poll({})[0][0]["offsets"] == {"a": 4}


def test_an_assign_keeps_known_positions_and_forgets_other_keys(talk):
    talk.assign(["a", "b"], {})
    talk.poll({"a": [[5, "x"]]})
    requests, value = talk.assign(["a", "c", "d"], {"a": 2, "c": 8})
    assert requests == [{"type": "list_committed_offsets", "keys": ["a", "c", "d"]}]
    assert value == ["a", "c", "d"]
    assert talk.poll({})[0][0]["offsets"] == {"a": 6, "c": 8, "d": 0}


def test_seek_to_beginning_asks_nobody(talk):
    talk.assign(["a"], {"a": 4})
    requests, value = talk.perform("assign", ["a", "b"], **{"seek-to-beginning?": True})
    assert (requests, value) == ([], ["a", "b"])
    assert talk.poll({})[0][0]["offsets"] == {"a": 0, "b": 0}


def test_an_error_to_the_commit_fails_the_poll_after_the_client_moved_on(talk):
    talk.assign(["a"], {})
    with pytest.raises(RpcError):
        talk.poll({"a": [[0, "x"]]}, commit=RpcError(11, "temporarily-unavailable", "no", True))
    assert talk.poll({})[0][0]["offsets"] == {"a": 1}


def test_crash_ends_the_client(talk):
    with pytest.raises(CrashClient):
        talk.perform("crash")


@pytest.mark.parametrize(
    ("f", "value", "reply", "why"),
    [
        ("send", [["send", "k", 1]], {"type": "poll_ok"}, "`type` must be send_ok"),
        ("send", [["send", "k", 1]], {"type": "send_ok"}, "`offset` is missing"),
        ("send", [["send", "k", 1]], {"type": "send_ok", "offset": "3"}, "must be an integer"),
        ("send", [["send", "k", 1]], {"type": "send_ok", "offset": True}, "must be an integer"),
        ("send", [["send", "k", 1]], {"type": "send_ok", "offset": 1.0}, "must be an integer"),
        ("send", [["send", "k", 1]], {"type": "send_ok", "offset": 1, "x": 2}, "unknown fields: x"),
        ("poll", [["poll"]], {"type": "poll_ok", "msgs": []}, "must be an object"),
        ("poll", [["poll"]], {"type": "poll_ok", "msgs": {"k": {}}}, "'k' are no list"),
        ("poll", [["poll"]], {"type": "poll_ok", "msgs": {"k": [[1]]}}, "[offset, message]"),
        ("poll", [["poll"]], {"type": "poll_ok", "msgs": {"k": [["1", 2]]}}, "[offset, message]"),
        ("assign", ["k"], {"type": "list_committed_offsets_ok", "offsets": {"k": None}}, "integer"),
    ],
)
def test_a_malformed_reply_is_told_with_what_was_expected(talk, f, value, reply, why):
    with pytest.raises(MalformedReply) as caught:
        talk.perform(f, value, answers=[reply | {"in_reply_to": 1}])
    assert why in caught.value.why
    assert caught.value.reply["type"] == reply["type"]
    assert f'"type": "{caught.value.request["type"]}_ok"' in caught.value.expected
