"""Who may read files is asked of a gateway once for a while, and nobody's garbage takes an honest node's answer."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.ids import NodeId
from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused
from weft_worker_agent.outbound.mesh.identity import load_or_make
from weft_worker_agent.outbound.mesh.readers import EACH, KEPT, NO_S, NotAReader, NotKnown, Readers
from weft_worker_agent.outbound.mesh.signed_words import Words

FILES = "1" * 16
HONEST = Words(NodeId("n-b"), "1", "AAAA")


def garbage(number: int, node: str = "n-a") -> Words:
    """Words that cost nobody anything."""
    return Words(NodeId(node), str(number), "BBBB")


class Asked(Gateway):
    """Answers as it is told, and counts."""

    def __init__(self, folder: Path) -> None:
        super().__init__("http://gateway", load_or_make(folder))
        object.__setattr__(self, "said", [60.0])
        object.__setattr__(self, "count", 0)

    async def files_reader(self, files: str, words: Any) -> float:
        object.__setattr__(self, "count", self.__dict__["count"] + 1)
        answer = self.__dict__["said"][0]
        if isinstance(answer, Exception):
            raise answer
        return float(answer)


async def test_a_gateways_yes_is_kept_a_minute_a_no_some_seconds_and_both_for_the_same_words_alone(
    tmp_path: Path,
) -> None:
    gateway, now = Asked(tmp_path), [0.0]
    readers, count = Readers(gateway, lambda: now[0]), lambda: gateway.__dict__["count"]
    words = Words(NodeId("n-a"), "1", "AAAA")
    # when many ask at once, one question is asked
    await asyncio.gather(*(readers.check(FILES, words) for _ in range(10)))
    now[0] = 59.0
    await readers.check(FILES, words)
    assert 1 == count()
    # whoever has other words has none of its answers
    gateway.__dict__["said"][0] = Refused(403, "it needs none")
    with pytest.raises(NotAReader, match="it needs none"):
        await readers.check(FILES, Words(NodeId("n-a"), "1", "BBBB"))
    with pytest.raises(NotAReader):
        await readers.check("0" * 16, words)
    # and a minute later it is asked again
    now[0] = 61.0
    with pytest.raises(NotAReader):
        await readers.check(FILES, words)
    assert 4 == count()
    gateway.__dict__["said"][0] = 5.0
    now[0] += NO_S + 0.1
    await readers.check(FILES, words)
    # a gateway that says nothing is neither
    gateway.__dict__["said"][0] = NotNow("away")
    now[0] += 6.0
    with pytest.raises(NotKnown, match="away"):
        await readers.check(FILES, words)


async def test_answers_are_kept_for_so_many_words_and_no_more(tmp_path: Path) -> None:
    gateway = Asked(tmp_path)
    readers = Readers(gateway, lambda: 0.0)
    for number in range(KEPT + 1):
        await readers.check(FILES, Words(NodeId("n-a"), str(number), "AAAA"))
    await readers.check(FILES, Words(NodeId("n-a"), str(KEPT), "AAAA"))
    assert KEPT + 1 == gateway.__dict__["count"]
    await readers.check(FILES, Words(NodeId("n-a"), "0", "AAAA"))
    assert KEPT + 2 == gateway.__dict__["count"]


async def test_what_is_refused_pushes_out_nobodys_yes(tmp_path: Path) -> None:
    gateway = Asked(tmp_path)
    readers = Readers(gateway, lambda: 0.0)
    await readers.check(FILES, HONEST)
    gateway.__dict__["said"][0] = Refused(403, "it needs none")
    for number in range(KEPT + 1):
        with pytest.raises(NotAReader):
            await readers.check(FILES, garbage(number))
    # the honest node's answer stands, and the oldest refusal has gone
    asked = gateway.__dict__["count"]
    await readers.check(FILES, HONEST)
    assert asked == gateway.__dict__["count"]
    with pytest.raises(NotAReader):
        await readers.check(FILES, garbage(0))
    assert asked + 1 == gateway.__dict__["count"]


class Silent(Asked):
    """Says yes once it may."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        object.__setattr__(self, "may", asyncio.Event())

    async def files_reader(self, files: str, words: Any) -> float:
        await self.__dict__["may"].wait()
        return await super().files_reader(files, words)


async def test_in_one_nodes_name_two_questions_are_open_and_others_are_asked_beside_them(tmp_path: Path) -> None:
    gateway = Silent(tmp_path)
    readers = Readers(gateway, lambda: 0.0)
    # given more words in one node's name than there may be questions, and those of another one
    many = [asyncio.create_task(readers.check(FILES, garbage(number))) for number in range(100)]
    honest = asyncio.create_task(readers.check(FILES, HONEST))
    await asyncio.sleep(0)
    gateway.__dict__["may"].set()
    # then two of them are asked, and what the other one said is
    await honest
    found = await asyncio.gather(*many, return_exceptions=True)
    assert [None] * EACH == [each for each in found if each is None]
    assert {"too many ask for files at once in the name of the node n-a"} == {
        str(each) for each in found if isinstance(each, NotKnown)
    }
    assert EACH + 1 == gateway.__dict__["count"]


async def test_a_node_that_its_certificate_tells_is_refused_a_while_whatever_it_says(tmp_path: Path) -> None:
    gateway, now = Asked(tmp_path), [0.0]
    readers = Readers(gateway, lambda: now[0])
    await readers.check(FILES, garbage(0), known=True)
    gateway.__dict__["said"][0] = Refused(403, "it needs none")
    for number in range(1, 10):
        with pytest.raises(NotAReader, match="it needs none"):
            await readers.check(FILES, garbage(number), known=True)
    assert 2 == gateway.__dict__["count"]
    # what it was allowed by a yes still stands, and other files and nodes are asked for
    await readers.check(FILES, garbage(0), known=True)
    for files, words in (("2" * 16, garbage(1)), (FILES, HONEST)):
        with pytest.raises(NotAReader):
            await readers.check(files, words, known=True)
    assert 4 == gateway.__dict__["count"]
    # and some seconds later it is asked again
    now[0] = NO_S
    gateway.__dict__["said"][0] = 60.0
    await readers.check(FILES, garbage(1), known=True)
