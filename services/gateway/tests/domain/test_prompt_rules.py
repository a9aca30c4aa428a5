"""Whose ids count, what fits a context, and which prompts only an engine makes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_gateway.domain.inference_request import Constraint, InferenceRequest, Message
from weft_gateway.domain.prompts.comparison import MAX_SHOWN, Probed, compared
from weft_gateway.domain.prompts.fitting import check_fits
from weft_gateway.domain.prompts.rendering import A_MESSAGE, characters, only_engine_renders
from weft_gateway.domain.refused import Refused
from weft_prompts.way import Way

IDS = st.lists(st.integers(0, 9), min_size=1, max_size=6)
CHAT = InferenceRequest(model="m", chat=(Message("system", "ab"), Message("user", "cde")))
TEXT = InferenceRequest(model="m", text="abcd", budget_field="max_tokens")


def probe(ours: list[int] | None, theirs: list[int] | None, *, other: list[int] | None = None) -> Probed:
    """`other`: what the second way makes, where that is not the same."""
    return Probed("the text 'x'", {Way.TEMPLATE: ours, Way.TOKENIZER: ours if other is None else other}, theirs)


@given(st.lists(IDS, max_size=5))
def test_ids_that_are_all_equal_are_taken_in_the_first_way(made: list[list[int]]) -> None:
    assert (Way.TEMPLATE, "") == compared([probe(ids, ids) for ids in made])


@given(st.lists(IDS, max_size=4), IDS, IDS)
def test_one_difference_is_enough_to_leave_prompts_to_the_engine(
    equal: list[list[int]], ours: list[int], theirs: list[int]
) -> None:
    way, why = compared([*(probe(ids, ids) for ids in equal), probe(ours, theirs)])

    assert (way is None, bool(why)) == (ours != theirs, ours != theirs)


def test_the_way_that_fits_every_probe_is_taken() -> None:
    both, second = probe([1, 2], [1, 2]), probe([2], [1, 2], other=[1, 2])

    assert (Way.TOKENIZER, "") == compared([both, second])
    assert compared([second, probe([1, 2], [1, 2], other=[2])])[0] is None


def test_a_difference_is_told_by_place_or_number() -> None:
    assert (None, "the text 'x' has the id 3 at place 1 for the engine and 2 by the model's card") == compared(
        [probe([1, 2], [1, 3])]
    )
    assert (None, "the text 'x' is 1 tokens for the engine and 2 by the model's card") == compared([probe([1, 2], [1])])
    assert (None, "the engine refuses the text 'x', which the model's card renders") == compared([probe([1], None)])


def test_a_chat_that_cannot_be_rendered_here_is_no_difference() -> None:
    assert (Way.TEMPLATE, "") == compared([probe(None, [1, 2]), probe(None, None), probe([1], [1])])


def test_a_long_probe_is_told_by_its_beginning() -> None:
    whole = Probed("x" * MAX_SHOWN, {Way.TEMPLATE: [1], Way.TOKENIZER: [1]}, [1, 2])
    longer = Probed("x" * (MAX_SHOWN + 1), whole.ours, whole.theirs)

    assert f"{'x' * MAX_SHOWN} is 2 tokens" in compared([whole])[1]
    assert f"{'x' * MAX_SHOWN}… is 2 tokens" in compared([longer])[1]


@pytest.mark.parametrize(("tokens", "fits"), [(0, True), (99, True), (100, False), (101, False)])
def test_a_prompt_fits_while_it_leaves_room_for_a_token(tokens: int, fits: bool) -> None:
    if fits:
        check_fits(tokens, 100, TEXT)
        return
    with pytest.raises(Refused) as refused:
        check_fits(tokens, 100, TEXT)
    assert f"The prompt has {tokens} tokens, the context holds 100 with the answer." == refused.value.sentence
    assert (400, "prompt", "context_length_exceeded") == (refused.value.status, refused.value.param, refused.value.code)


def test_a_refusal_names_what_was_asked_for_by_the_clients_own_field() -> None:
    asked = InferenceRequest(model="m", chat=CHAT.chat, max_tokens=7, budget_field="max_completion_tokens")
    with pytest.raises(Refused) as refused:
        check_fits(12, 9, asked)
    what = "The prompt has 12 tokens and `max_completion_tokens` asks for 7, the context holds 9 with the answer."
    assert (what, "messages") == (refused.value.sentence, refused.value.param)


def test_plain_chats_and_texts_may_be_made_here() -> None:
    told_nothing = InferenceRequest(model="m", chat=CHAT.chat, constraint=Constraint("{}"))
    assert ["", "", ""] == [only_engine_renders(each) for each in (CHAT, TEXT, told_nothing)]


@pytest.mark.parametrize(
    "request_",
    [
        InferenceRequest(model="m", tokens=(1, 2)),
        InferenceRequest(model="m", chat=CHAT.chat, template_kwargs='{"a":1}'),
        InferenceRequest(model="m", chat=CHAT.chat, constraint=Constraint("{}", told=5)),
        InferenceRequest(model="m", chat=(*CHAT.chat, Message("assistant", "so"))),
    ],
    ids=["ids", "variables", "tools", "an assistant's last message"],
)
def test_what_engines_have_ways_of_their_own_with_is_theirs(request_: InferenceRequest) -> None:
    assert only_engine_renders(request_)


def test_characters_are_those_of_all_messages_or_of_the_text() -> None:
    assert (5 + 2 * A_MESSAGE, 4, 0) == (
        characters(CHAT),
        characters(TEXT),
        characters(InferenceRequest(model="m", tokens=(1,))),
    )


def test_many_empty_messages_are_a_long_prompt() -> None:
    many = InferenceRequest(model="m", chat=(Message("user", ""),) * 1000)

    assert 1000 * A_MESSAGE == characters(many)
    assert characters(many) + 4 == characters(
        InferenceRequest(model="m", chat=(*many.chat[1:], Message("u", "", "name")))
    )
