"""Figures by model: so many models at once, however many there are."""

from weft_gateway.domain.model_labels import OTHERS, AliasLabels, ModelLabels


def test_the_first_so_many_have_figures_of_their_own_and_all_others_share_theirs() -> None:
    labels = ModelLabels(2)
    assert ["a", "b", OTHERS, OTHERS, "a"] == [labels.label(name) for name in ("a", "b", "c", "d", "a")]
    assert ["a", "b"] == list(labels)


def test_a_model_that_is_gone_makes_room_and_its_figures_end() -> None:
    there, gone = {"a", "b", "c"}, list[str]()
    labels = ModelLabels(2, there.__contains__, gone.append)
    for name in "ab":
        labels.label(name)
    there.remove("a")
    assert OTHERS == labels.label("c")  # nobody has looked yet
    labels.sweep()
    assert (["a"], "c", "b") == (gone, labels.label("c"), labels.label("b"))
    assert OTHERS == labels.label("a")


def test_of_aliases_beyond_the_bound_neither_the_alias_nor_its_model_is_named() -> None:
    labels = AliasLabels(2)
    pairs = [("chat", "local"), ("chat", "cloud"), ("code", "local"), ("chat", "local")]
    assert [*pairs[:2], (OTHERS, OTHERS), pairs[3]] == [labels.labels(*pair) for pair in pairs]
