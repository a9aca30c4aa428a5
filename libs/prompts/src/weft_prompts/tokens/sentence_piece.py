"""SentencePiece's BPE ("llama") of a GGUF file as a `tokenizer.json`: pieces that merge by their scores."""

from collections.abc import Mapping

from weft_gguf.vocabulary import GgufVocabulary

from weft_prompts.tokens.added import Json, added_tokens, end_token, ends, places_of, whole
from weft_prompts.tokens.byte_pair import SPACE, bytes_there, merging, spaced_decoder
from weft_prompts.tokens.refusal import NoTokenizer

MAX_PIECE = 512
"""Characters of a token; the largest in use have 64."""
MAX_MERGES = 4_000_000


def sentence_piece(vocabulary: GgufVocabulary) -> Json:
    """A `tokenizer.json` of a "llama" vocabulary; raises NoTokenizer."""
    places = places_of(vocabulary)
    bytes_there(places)
    if "phi-3" in vocabulary.name.lower() or "phi3" in vocabulary.name.lower():
        raise NoTokenizer("llama.cpp takes ASCII spaces away behind tokens of Phi-3, and `tokenizers` takes all spaces")
    if not vocabulary.scores:
        raise NoTokenizer("the file gives its tokens no scores, by which they would merge")
    before = end_token(vocabulary, "bos", 1, wanted=vocabulary.flags.get("add_bos_token", True))
    after = end_token(vocabulary, "eos", 2, wanted=vocabulary.flags.get("add_eos_token", False))
    prefixed = vocabulary.flags.get("add_space_prefix", True)
    spaced: list[Json] = [{"type": "Prepend", "prepend": SPACE}] if prefixed else []
    spaced.append({"type": "Replace", "pattern": {"String": " "}, "content": SPACE})
    return whole(
        added_tokens(vocabulary, places),
        {"type": "Sequence", "normalizers": spaced},
        None,
        ends(places, before, after),
        spaced_decoder(strip=1 if prefixed else 0),
        merging(places, merges_by_score(places, vocabulary.scores), byte_fallback=True),
    )


def merges_by_score(places: Mapping[str, int], scores: tuple[float, ...]) -> list[tuple[str, str]]:
    """All pairs of tokens that make a third, in the order of its score, the highest first.

    Where scores are equal, llama.cpp merges what stands further left in the text. A list of merges can say that of
    runs of one character alone; for others NoTokenizer is raised.
    """
    by_score: dict[float, dict[str, list[tuple[str, str]]]] = {}
    count = 0
    for text, place in places.items():
        if len(text) > MAX_PIECE:
            raise NoTokenizer(f"a token has {len(text)} characters: {MAX_PIECE} at most are taken apart")
        pairs = [(text[:at], text[at:]) for at in range(1, len(text)) if text[:at] in places and text[at:] in places]
        if pairs:
            count += len(pairs)
            by_score.setdefault(scores[place], {})[text] = pairs
    if count > MAX_MERGES:
        raise NoTokenizer(f"its tokens are made of one another in {count} ways: {MAX_MERGES} are taken at most")
    return [pair for score in sorted(by_score, reverse=True) for pair in _of_one_score(by_score[score], places)]


def _of_one_score(made: Mapping[str, list[tuple[str, str]]], places: Mapping[str, int]) -> list[tuple[str, str]]:
    if len(made) == 1:
        return next(iter(made.values()))
    runs = sorted(made, key=len, reverse=True)
    letter = runs[0][0]
    if runs != [letter * length for length in range(len(runs) + 1, 1, -1)] or runs[0] + letter in places:
        one, other = sorted(made)[:2]
        raise NoTokenizer(f"{one[:64]!r} and {other[:64]!r} have one score, and no list says which merges first")
    # the longer first: so the run furthest left grows to its end before the next begins
    return [(run[1:], letter) for run in runs]
