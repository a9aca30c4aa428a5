"""Stop strings in a token stream."""

from hypothesis import given
from hypothesis import strategies as st
from weft_engine.stop_strings import StopScanner


def run(stops: list[str], pieces: list[str]) -> tuple[str, list[int], bool, list[tuple[str, list[int]]]]:
    scanner: StopScanner[int] = StopScanner(stops)
    released: list[tuple[str, list[int]]] = []
    for i, piece in enumerate(pieces):
        text, ids = scanner.feed((piece, (i,)))
        released.append((text, list(ids)))
        if scanner.stopped:
            break
    if not scanner.stopped:
        text, ids = scanner.rest()
        released.append((text, list(ids)))
    return (
        "".join(text for text, _ in released),
        [i for _, ids in released for i in ids],
        scanner.stopped,
        released,
    )


@given(
    st.lists(st.text("ab<", min_size=1, max_size=4), max_size=3),
    st.lists(st.text("ab<", max_size=4), max_size=12),
)
def test_the_text_ends_before_the_first_stop_and_nothing_else_is_lost(stops: list[str], pieces: list[str]) -> None:
    whole = "".join(pieces)
    text, ids, stopped, released = run(stops, pieces)

    # the stream is cut at the first stop that is complete with as few pieces as possible
    for count in range(len(pieces) + 1):
        seen = "".join(pieces[:count])
        cuts = [seen.find(stop) for stop in stops if stop in seen]
        if cuts:
            assert stopped
            assert seen[: min(cuts)] == text
            return
    assert not stopped
    assert whole == text
    assert list(range(len(pieces))) == ids
    seen_text, seen_ids = "", 0
    for part, part_ids in released:
        seen_text += part
        seen_ids += len(part_ids)
        assert "".join(pieces[:seen_ids]) == seen_text


def test_text_that_may_become_a_stop_is_held_back_and_released_when_it_does_not() -> None:
    scanner: StopScanner[int] = StopScanner(["<end>"])

    assert ("", []) == scanner.feed(("<e", (1,)))
    assert ("", []) == scanner.feed(("n", (2,)))
    assert ("<enx", [1, 2, 3]) == scanner.feed(("x", (3,)))


def test_without_stops_pieces_pass_untouched() -> None:
    assert ("a", (1,)) == StopScanner[int]([]).feed(("a", (1,)))


def test_json_that_is_to_be_spared_is_cut_nowhere_and_text_is() -> None:
    for first, whole in (("{", '{"a": "<end>"}'), ("t", "te")):
        scanner: StopScanner[int] = StopScanner(["<end>", "xt"], spare_json=True)
        pieces = '{"a": "<end>"}' if first == "{" else "text {<end>"
        text = "".join(scanner.feed((letter, (1,)))[0] for letter in pieces if not scanner.stopped)
        assert (whole, first == "t") == (text, scanner.stopped)
