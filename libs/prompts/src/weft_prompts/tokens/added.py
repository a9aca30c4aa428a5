"""The part of a `tokenizer.json` that is the same for each kind: tokens found as they stand, and a text's two ends."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft_gguf.vocabulary import GgufVocabulary

from weft_prompts.tokens.refusal import NoTokenizer
from weft_prompts.tokens.roles import CONTROL, UNKNOWN, USER_DEFINED, corrected_types

Json = dict[str, Any]


def places_of(vocabulary: GgufVocabulary) -> dict[str, int]:
    """Ids by the tokens' texts. Raises NoTokenizer where two tokens have one text, or lists differ in length."""
    tokens = vocabulary.tokens
    if not tokens:
        raise NoTokenizer("the file holds no vocabulary")
    for what, items in (("types", vocabulary.types), ("scores", vocabulary.scores)):
        if items and len(items) != len(tokens):
            raise NoTokenizer(f"the file holds {len(tokens)} tokens and {len(items)} {what} of tokens")
    # llama.cpp's names for tokens without a text
    places = {text or f"[EMPTY_{place}]": place for place, text in enumerate(tokens)}
    if len(places) != len(tokens):
        raise NoTokenizer(f"{len(tokens) - len(places)} of the file's {len(tokens)} tokens have the text of another")
    return places


def added_tokens(vocabulary: GgufVocabulary, places: Mapping[str, int]) -> list[Json]:
    """Those that are cut out of a text before anything else, by their ids."""
    texts = list(places)
    return [
        {
            "id": place,
            "content": texts[place],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind != USER_DEFINED,
        }
        for place, kind in enumerate(corrected_types(vocabulary, places))
        if kind in (UNKNOWN, CONTROL, USER_DEFINED)
    ]


def ends(places: Mapping[str, int], before: int | None, after: int | None) -> Json | None:
    """What puts one token before a text, one behind it, or neither."""
    names = list(places)
    around = [names[each] for each in (before, after) if each is not None]
    if not around:
        return None
    single: list[Json] = [{"Sequence": {"id": "A", "type_id": 0}}]
    pair: list[Json] = [*single, {"Sequence": {"id": "B", "type_id": 0}}]
    if before is not None:
        single.insert(0, {"SpecialToken": {"id": names[before], "type_id": 0}})
        pair.insert(0, single[0])
    if after is not None:
        single.append({"SpecialToken": {"id": names[after], "type_id": 0}})
        pair.append(single[-1])
    special = {name: {"id": name, "ids": [places[name]], "tokens": [name]} for name in around}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}


def end_token(vocabulary: GgufVocabulary, role: str, default: int | None, *, wanted: bool) -> int | None:
    """The id of the token at one end of each text; None if there is none. Raises NoTokenizer where it must and can't.

    `default` is what llama.cpp takes where the file names none.
    """
    if not wanted:
        return None
    place = vocabulary.ids.get(role, default)
    if place is None or not 0 <= place < len(vocabulary.tokens):
        raise NoTokenizer(f"each text has the {role} token at its end, and the file names none of its vocabulary")
    return place


def whole(
    added: Sequence[Json], normalizer: Json | None, cut: Json | None, ended: Json | None, decoder: Json, model: Json
) -> Json:
    """A `tokenizer.json` of these parts."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": list(added),
        "normalizer": normalizer,
        "pre_tokenizer": cut,
        "post_processor": ended,
        "decoder": decoder,
        "model": model,
    }
