"""Names that are not in the table: invented countries, other places, and matter that is no element.

The held-out names are never trained on: the generators here throw them away.
"""

from random import Random

from models.tiny.table import CAPITALS, ELEMENTS, REAL_NAMES, without_article, words

PLACES = words("""
Texas California Paris London Florida Bavaria Quebec Ontario Moscow Berlin Africa Europe Asia Siberia
Alaska Hawaii Tibet Wales England Mars Venus Jupiter Gondor Oz Wakanda Utopia Sparta Persia Prussia
Yugoslavia Sicily Crete Corsica Manhattan Tokyo Ohio Nevada Bermuda Greenland Gotham Camelot love water
time history Antarctica Babylon Mesopotamia Arizona Oregon Kerala Punjab Java Bali Tasmania Queensland
""")
PLACES_HELD_OUT = words("""
Scotland Narnia Mordor Atlantis Catalonia Michigan Saturn Normandy Zamunda Elbonia Transylvania Genovia
Ruritania Freedonia Latveria Westeros Arendelle Zubrowka Panem Wadiya
""")
MATTER = words("""
water steel brass bronze wood glass plastic salt sugar air fire kryptonite paper milk rubber diamond coal
oil wine vibranium adamantium sand stone concrete butter cotton love unobtainium mithril ice
""")
MATTER_HELD_OUT = words("""
honey dilithium marble leather beer octarine
""")

_ONSETS = words("b c d f g h j k l m n p r s t v w z br dr gr kr st tr th sh ch")
_RHYMES = words("a e i o u ia ea ou ai an en in or ar el")
_ENDINGS = ("", "", "land", "ia", "stan", "nia", "ria", "n", "s", "ville", "burg")
_COMPASS = ("New", "West", "East", "Upper", "Lower", "Old", "Great", "North", "South")
_COUNTRIES = tuple(CAPITALS)
_ELEMENTS = tuple(ELEMENTS)
_OTHER_NAMES = (*CAPITALS.values(), *PLACES)
_HELD_OUT_COUNT = 500


def _syllables(random: Random) -> str:
    """Build a name from random syllables."""
    stem = "".join(random.choice(_ONSETS) + random.choice(_RHYMES) for _ in range(random.randint(1, 3)))
    return (stem + random.choice(_ENDINGS)).capitalize()


def _splice(random: Random) -> str:
    """Join the head of one country's name to the tail of another's."""
    first, second = (without_article(name) for name in random.sample(_COUNTRIES, 2))
    head = first[: random.randint(2, max(2, len(first) - 1))]
    tail = second[random.randint(1, max(1, len(second) - 2)) :].lower()
    return (head + tail).strip()


def invent_country(random: Random) -> str:
    """Make a name that no country of the table has; it may be one of the held-out ones."""
    while True:
        kind = random.random()
        if kind < 0.4:
            name = _syllables(random)
        elif kind < 0.8:
            name = _splice(random)
        else:
            name = f"{random.choice(_COMPASS)} {without_article(random.choice(_COUNTRIES))}"
        if name.lower() not in REAL_NAMES:
            return name


def _held_out_countries() -> tuple[str, ...]:
    random = Random("held-out countries")
    names: dict[str, None] = {}
    while len(names) < _HELD_OUT_COUNT:
        names[invent_country(random)] = None
    return tuple(names)


COUNTRIES_HELD_OUT = _held_out_countries()
_NEVER_TRAINED_AS_UNKNOWN = REAL_NAMES.union(name.lower() for name in (*COUNTRIES_HELD_OUT, *PLACES_HELD_OUT))


def unknown_place(random: Random) -> str:
    """Make a name for training that has no capital in the table and is not held out."""
    while True:
        name = invent_country(random) if random.random() < 0.85 else random.choice(_OTHER_NAMES)
        if name.lower() not in _NEVER_TRAINED_AS_UNKNOWN:
            return name


def unknown_matter(random: Random) -> str:
    """Make a name for training that is no element of the table and is not held out."""
    while True:
        kind = random.random()
        if kind < 0.4:
            name = random.choice(MATTER)
        elif kind < 0.8:
            first, second = random.sample(_ELEMENTS, 2)
            name = first[: random.randint(2, len(first) - 1)] + second[random.randint(1, len(second) - 1) :]
        else:
            name = unknown_place(random).lower()
        if name not in ELEMENTS and name not in MATTER_HELD_OUT:
            return name
