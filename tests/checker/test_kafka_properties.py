"""What holds of the checker for every history: it answers, and names and holes do not matter to it."""

from history_language import history
from hypothesis import given
from hypothesis import strategies as st
from random_histories import POLL, CorrectLog, broken_log, mutated_histories

from runs import edn
from runs.history import Op, edn_line
from workloads.kafka.checker import check, explain
from workloads.kafka.checker.observed import scalar


@given(mutated_histories(), st.booleans(), st.booleans())
def test_answers_whatever_the_history(ops, ww_deps, strict):
    options = {"ww_deps": ww_deps, "strict": strict, "nodes": ["n0", "n1"], "concurrency": 3}
    result = check(ops, options)
    assert result["valid?"] in (True, False, "unknown")
    assert {each.type for each in explain(result, ops)} == set(result["error-types"])
    edn.dumps(result, pretty=True)


@given(st.integers(0, 2**32), st.integers(2, 60))
def test_a_correct_log_is_valid(seed, count):
    ops = CorrectLog(seed).run(count)
    result = check(ops, {"strict": True, "nodes": ["n0", "n1"], "concurrency": 3})
    # The final assignments carry no mark here, so a strict check has nothing to say.
    assert (result["valid?"], result["bad-error-types"]) == ("unknown", ())
    assert check(ops, {})["valid?"] is True


def _renamed(op: Op, name, number) -> Op:
    """`op` with every key through `name` and every offset through `number` (key, offset)."""
    if op.f == "assign":
        value = [name(key) for key in op.value]
    elif op.f == "send":
        ((f, key, sent),) = op.value
        pair = [number(key, sent[0]), sent[1]] if isinstance(sent, list) else sent
        value = [[f, name(key), pair]]
    elif op.f == "poll" and len(op.value[0]) == 2:
        answer = {
            name(key): [[number(key, offset), message] for offset, message in run]
            for key, run in op.value[0][1].items()
        }
        value = [[POLL, answer]]
    else:
        value = op.value
    return Op(op.index, op.time, op.type, op.process, op.f, value, op.extra)


@given(st.integers(0, 2**32), st.integers(2, 40), st.permutations(["0", "1", "2"]))
def test_names_of_keys_do_not_matter(seed, count, names):
    ops = broken_log(seed, count)
    renamed = [_renamed(op, lambda key: names[int(key)], lambda _, offset: offset) for op in ops]
    assert _summary(renamed) == _summary(ops)


@given(st.integers(0, 2**32), st.integers(2, 40))
def test_holes_in_the_offsets_do_not_matter(seed, count):
    ops = broken_log(seed, count)
    spread = [_renamed(op, lambda key: key, lambda _, offset: 7 * offset + 3) for op in ops]
    assert _summary(spread) == _summary(ops)


def _summary(ops: list[Op]) -> tuple[object, ...]:
    result = check(ops, {})
    counts = {each: result[each].get("count") for each in result["error-types"]}
    return result["valid?"], counts


def test_the_language_of_histories_says_what_it_means():
    lines = [edn_line(op) for op in history("0 send x=1@0\n1 poll x=1@0 fail\n1 assign x rewind")]
    head = "{:index 1, :time 2000000, :type :ok, :process 0, :f :send, "
    assert lines[1] == head + ':value [[:send "x" [0 1]]]}'
    assert lines[3].endswith(':type :fail, :process 1, :f :poll, :value [[:poll {"x" [[0 1]]}]]}')
    assert lines[5].endswith(':value ["x"], :seek-to-beginning? true}')


def test_messages_are_equal_only_when_they_are_the_same_json():
    values = [1, 1.0, True, "1", "true", "1.0", [1], {"a": 1}, None, '{"a" 1}']
    assert len({scalar(value) for value in values}) == len(values)
    assert scalar({"a": [1, 2]}) == scalar({"a": [1, 2]})
