"""The conversation's rules, its terminal, and which model a question goes to."""

from typing import Any, cast

import pytest
from weft_cli.chat.chat_models import ChatModel, _answers_chat, _chat_alias, ambiguous, to_ask
from weft_cli.chat.conversation import Command, Conversation, NoCommand, meant
from weft_cli.render import printable
from weft_client.failure import Exit, Failure


def test_every_question_carries_what_was_said_and_the_system_message() -> None:
    talk = Conversation("tiny", "Be brief.", options={"max_tokens": 5})
    talk = talk.asked("One?").answered("Yes.").asked("Two?")
    assert {
        "model": "tiny",
        "stream": True,
        "max_tokens": 5,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "Two?"},
        ],
    } == talk.body()


def test_a_question_without_an_answer_is_taken_back() -> None:
    talk = Conversation("tiny").asked("One?").answered("Yes.")
    assert talk == talk.asked("Too long?").answered("")


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("", None),
        ("  \n", None),
        ("What?", "What?"),
        ("//etc is what?", "/etc is what?"),
        ("/model other", Command("model", "other")),
        ("/system  Be brief. ", Command("system", "Be brief.")),
        ("/clear", Command("clear", "")),
        ("/bye", Command("quit", "")),
    ],
)
def test_a_typed_line_is_a_question_or_a_command(line: str, means: object) -> None:
    assert means == meant(line)


def test_what_only_looks_like_a_command_is_answered_with_those_that_there_are() -> None:
    found = meant("/frobnicate now")
    assert isinstance(found, NoCommand)
    assert "/frobnicate is no command; there are /model, /system" in found.sentence


def test_the_only_model_that_serves_is_asked_and_of_several_none_is_guessed() -> None:
    tiny, other, loading = ChatModel("tiny"), ChatModel("other"), ChatModel("big", "loading", "reads the file")
    assert tiny == to_ask([tiny, loading], None)
    assert loading == to_ask([loading], None)
    assert None is to_ask([tiny, other], None)
    assert other == to_ask([tiny, other], "other")
    assert "later" == (to_ask([tiny], "later") or tiny).name
    assert (Exit.USAGE, "several models serve: tiny, other; say which: -m NAME") == (
        ambiguous([tiny, other, loading]).exit,
        str(ambiguous([tiny, other, loading])),
    )


def alias(name: str, rule: str, *targets: tuple[str, str, int]) -> Any:
    body = [{"model": model, "state": state, "weight": weight} for model, state, weight in targets]
    return {"name": name, "rule": rule, "targets": body}


def test_an_alias_is_picked_by_its_name_and_says_what_it_stands_for() -> None:
    ordered = _chat_alias(alias("chat", "order", ("local", "loading", 1), ("cloud", "ready", 1)))
    weighed = _chat_alias(alias("both", "weights", ("local", "loading", 3), ("cloud", "empty", 1)))
    assert (True, "alias of local, cloud in order") == (ordered.serves, ordered.about)
    assert (False, "alias of local 3, cloud 1 by weight; loading") == (weighed.serves, weighed.about)
    local, cloud = ChatModel("local", "loading"), ChatModel("cloud")
    # where one model alone answers it is asked, under whatever names it goes besides
    assert cloud == to_ask([local, cloud, ordered, weighed], None)
    assert ordered == to_ask([local, cloud, ordered], "chat")
    assert None is to_ask([ChatModel("local"), cloud, ordered], None)
    assert "local, cloud, chat" in str(ambiguous([ChatModel("local"), cloud, ordered]))


def test_where_no_model_answers_the_reasons_are_told() -> None:
    with pytest.raises(Failure, match="a is unservable: no GGUF; b is loading"):
        to_ask([ChatModel("a", "unservable", "no GGUF"), ChatModel("b", "loading")], None)
    with pytest.raises(Failure, match="weft deploy tiny"):
        to_ask([], None)


def test_what_a_model_says_commands_no_terminal() -> None:
    assert "a[31mb\tc\nd" == printable("a\x1b[31mb\tc\nd\x07\x9b\r")


def test_an_embedding_model_is_nobody_to_talk_to() -> None:
    specs: list[dict[str, Any]] = [
        {"engine_args": {}, "weights": {"embeds": False}},
        {"engine_args": {}, "weights": {"embeds": True}},
        {"engine_args": {"embeddings": True}, "weights": {"embeds": False}},
        {"engine_args": {"embeddings": False}, "weights": {"embeds": True}},
    ]
    assert [True, False, False, True] == [_answers_chat(cast("Any", {"spec": spec})) for spec in specs]
