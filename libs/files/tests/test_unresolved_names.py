"""A name that nobody knows is told as a sentence that begins with what was to be had."""

import pytest
from weft_files import Address, NotFetched, Resolver
from weft_testing.wanted_files import content, wanted


async def test_a_server_without_an_address_is_named_in_the_reason(resolver: Resolver) -> None:
    with pytest.raises(
        NotFetched, match=r"https://nobody\.invalid/m can't be reached: nobody\.invalid has no address \("
    ):
        await resolver.fetch(wanted(content(10)), [Address("https://nobody.invalid/m")])
