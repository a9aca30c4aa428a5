"""A request as the data plane's Submit, from its beginning and from where another replica ended."""

import pytest
from weft_gateway.domain.inference_request import Constraint, InferenceRequest, Message, Sampling
from weft_gateway.domain.submission import resumption, submission

TEXT = InferenceRequest(model="m", text="once", max_tokens=5, stop=("x",))


def test_a_prompt_is_a_chat_a_text_or_tokens() -> None:
    chat = submission(InferenceRequest(model="m", chat=(Message("user", "hi", "ann"),)), "c", "t")
    assert [("user", "hi", "ann")] == [(each.role, each.content, each.name) for each in chat.chat.messages]
    assert ("c", "t") == (chat.correlation_id, chat.traceparent)
    assert "once" == submission(TEXT, "c").text
    assert [1, 2] == list(submission(InferenceRequest(model="m", tokens=(1, 2)), "c").tokens.ids)
    # an empty text is a text
    assert submission(InferenceRequest(model="m", text=""), "c").HasField("text")


def test_what_was_not_asked_for_is_not_said() -> None:
    plain = submission(TEXT, "c")
    assert not plain.HasField("scores")
    assert not plain.HasField("constraint")
    assert not plain.sampling.HasField("temperature")
    told = submission(
        InferenceRequest(
            model="m",
            text="once",
            scores=0,
            bias=((3, 1.5),),
            sampling=Sampling(temperature=0.0, seed=7),
            constraint=Constraint("{}", most=3),
        ),
        "c",
    )
    assert (True, 0, "{}", 3) == (
        told.HasField("scores"),
        told.scores,
        told.constraint.json_schema,
        told.constraint.most,
    )
    assert [(3, 1.5)] == [(each.id, each.value) for each in told.bias]
    assert (0.0, 7, True) == (told.sampling.temperature, told.sampling.seed, told.sampling.HasField("temperature"))


@pytest.mark.parametrize(
    ("calls", "constraint", "stops"),
    [
        ((), None, ["x"]),
        ((), Constraint("{}"), ["x"]),
        (("f",), Constraint("{}", or_text=True), ["x"]),
        (("f",), Constraint("{}"), []),
    ],
)
def test_stop_strings_act_unless_the_answer_must_be_a_call(
    calls: tuple[str, ...], constraint: Constraint | None, stops: list[str]
) -> None:
    asked = InferenceRequest(model="m", text="once", stop=("x",), calls=calls, constraint=constraint)
    assert stops == list(submission(asked, "c").stop)


@pytest.mark.parametrize(("made", "left"), [((), 5), ((1, 2), 3), ((1, 2, 3, 4), 1)])
def test_an_answer_goes_on_with_what_is_left_of_its_budget(made: tuple[int, ...], left: int) -> None:
    found = resumption(TEXT, "c", made, "up", "t")
    assert found is not None
    assert (left, list(made), "up", "t") == (
        found.max_tokens,
        list(found.resume.output_ids),
        found.resume.text_sent,
        found.traceparent,
    )


@pytest.mark.parametrize("made", [(1,) * 5, (1,) * 6])
def test_an_answer_whose_budget_is_used_up_goes_nowhere(made: tuple[int, ...]) -> None:
    assert resumption(TEXT, "c", made, "") is None


def test_an_answer_without_a_budget_goes_on_without_one() -> None:
    found = resumption(InferenceRequest(model="m", text="once"), "c", (1,) * 99, "")
    assert found is not None
    assert 0 == found.max_tokens
