"""What messages may show: for each kind of fact its sentence, and when it is told."""

from typing import NamedTuple


class Fact(NamedTuple):
    """What is said of a kind of fact, and what to do about it.

    `is_clear`: it explains all others. `is_odd`: it is told of a valid run, too. `is_crowded`: it follows from
    a storm of messages, and says nothing in one. Fewer than `least` cases show nothing.
    """

    sentence: str
    is_clear: bool = False
    is_odd: bool = False
    is_crowded: bool = False
    least: int = 1


# A cause stands before what follows from it.
FACTS = {
    "unfit": Fact("{fact}", is_clear=True),
    "value": Fact(
        "{service} gave {node} {was} for {key}, and {node} wrote {value} for an add of {delta}. A read_ok"
        " has what was read in its field `value`.",
        is_clear=True,
    ),
    "alone": Fact(
        "No node sent a message to another node or to a service. What one is told the others must learn."
    ),
    "waits": Fact(
        "{node} asked {who} ({asked}) for a request of a client, and never got an answer. Answer what"
        " nodes ask, and wait for no answer where stdin is read.",
        is_crowded=True,
        is_odd=True,
    ),
    "same": Fact(
        "{node} sent the same cas of {key} {count} times for one {asked}, and {service} refused each with"
        " error 22 (precondition-failed). Read the key again before you repeat a cas.",
        is_odd=True,
    ),
    "refused": Fact(
        "{service} refused a cas of {node} with error {code}, and {node} acknowledged the {asked} all"
        " the same. Read the key again and repeat the cas until it is taken; then answer."
    ),
    "passed": Fact(
        "{service} refused a cas of {node} with error {code}, and {node} answered cas_ok all the"
        " same. Answer that error."
    ),
    "early": Fact(
        "{node} acknowledged the {asked} before {service} had answered its {call}. Wait for that answer."
    ),
    "later": Fact(
        "{node} acknowledged the {asked}, and then asked {service} ({call}). Ask first, look at the"
        " answer, and acknowledge what is kept."
    ),
    "reply": Fact(
        "{node} answered {client} with in_reply_to {number}, and request {waits} waited for an answer."
        " Take the `msg_id` of each request."
    ),
    "twice": Fact("For one add of {delta}, {node} changed {key} by that {count} times. Add once."),
    "over": Fact(
        "{node} read {got} in {key} of {service}, and wrote {value} over {was}, which {writer} had written."
        " Use cas."
    ),
    "order": Fact(
        "{node} changed {first}, and then put the message into {key}. A poll between the two finds the"
        " offset taken and no message: write the message first.",
        is_odd=True,
    ),
    "keys": Fact(
        "{node} never read {key} of {service}, which {writer} wrote. A sum has a part of each node."
    ),
    "older": Fact(
        "{service} gave {node} {value} for {key}, and that had been {was} since {since:.3f} s. It may show"
        " an older state: use lin-kv (or write to seq-kv before you read)."
    ),
    "offset": Fact(
        "{node} answered a send with offset {offset}, and the log that it wrote has the message at {at}."
    ),
    "below": Fact(
        "{node} was asked for key {key} from offset {at} on, and gave offset {first}. A poll gets the"
        " message at the offset that it names, and those behind it.",
        is_odd=True,
    ),
    "skips": Fact(
        "{node} was asked for key {key} from offset {at} on, and gave {first} and what follows, without"
        " {at}, which a send_ok has named. A poll gets the message at the offset that it names, and those"
        " behind it.",
        is_odd=True,
    ),
    "made": Fact(
        "{service} gave {node} {was} for {key} in its last read, and {node} answered {value}."
    ),
    "never": Fact(
        "No message with {element} in it arrived at {node}; at {others} one did. Send it to every node,"
        " directly or through others, until that has acknowledged it.",
        is_crowded=True,
    ),
    "behind": Fact(
        "The last read of {node} lacks {count} elements that had been acknowledged before, such as"
        " {element}. Tell every node what is new.",
        is_odd=True,
        is_crowded=True,
    ),
    "got": Fact(
        "{node} got a message with {element} in it from {src}, and later reads there lack it.",
        is_crowded=True,
    ),
    "polls": Fact(
        "{node} left a poll unanswered that asked for what nobody had sent yet. Answer it at once, with"
        " `msgs` {{}}.",
        is_odd=True,
        is_crowded=True,
    ),
    "dropped": Fact(
        "{node} never answered {body}, which came while {node} waited for an answer of {who}. If it"
        " reads stdin for that, it must not drop other messages.",
        is_odd=True,
        is_crowded=True,
    ),
    "code": Fact("{fact}", is_odd=True),
    "left": Fact(
        "{node} never answered {body}. Its code may have no answer to that, wait (for a lock, for an"
        " answer), or have failed unseen.",
        is_odd=True,
        is_crowded=True,
    ),
    "errors": Fact(
        "{node} sent {dest} an error that answers no request. Errors and answers need no answer.",
        is_odd=True,
        least=10,
    ),
    "self": Fact(
        "{node} sent {asked} to itself. Send to the other nodes alone.", is_odd=True, least=10
    ),
}
