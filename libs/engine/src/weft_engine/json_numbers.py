"""Numbers within bounds as grammars: which digits may follow which."""

from typing import Final

DECIMALS: Final = '("." [0-9]{1,15})?'
NUMBER: Final = f'"-"? ("0" | [1-9] [0-9]{{0,15}}) {DECIMALS} ([eE] [-+]? [0-9]{{1,2}})?'


def integer_between(low: int, high: int) -> str:
    """A grammar of exactly the integers from `low` to `high`, both at most 16 digits, `low` not above `high`."""
    ways: list[str] = []
    if low < 0:
        ways.append(f'"-" ({_digits_between(max(1, -high), -low)})')
    if high >= 0:
        ways.append(_digits_between(max(0, low), high))
    return " | ".join(ways)


def number_between(low: int, high: int) -> str:
    """A grammar of numbers from `low` to `high`, with decimals and without exponents."""
    ways: list[str] = []
    if low < 0:
        ways.append(f'"-" ({_decimals_between(max(0, -high), -low)})')
    if high >= 0:
        ways.append(_decimals_between(max(0, low), high))
    return " | ".join(ways)


def _decimals_between(low: int, high: int) -> str:
    """From 0 on: a whole part below the bound with any decimals, or the bound itself."""
    last = f'"{high}" ("." "0"{{1,15}})?'
    return last if low == high else f"({_digits_between(low, high - 1)}) {DECIMALS} | {last}"


def _digits_between(low: int, high: int) -> str:
    """The decimal forms of the integers from `low` to `high`, from 0 on, without leading zeros."""
    ways: list[str] = []
    for length in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (length - 1) if length > 1 else 0)
        ways.append(_same_length(str(first), str(min(high, 10**length - 1))))
    return " | ".join(ways)


def _same_length(low: str, high: str) -> str:
    """Between two numbers of equal length, digit by digit."""
    if not low:
        return '""'
    if low == high:
        return f'"{low}"'
    rest = len(low) - 1
    if low[1:] == "0" * rest and high[1:] == "9" * rest:
        return f"{_digit(low[0], high[0])}{_any(rest)}"
    if low[0] == high[0]:
        return f'"{low[0]}" ({_same_length(low[1:], high[1:])})'
    ways = [f'"{low[0]}" ({_same_length(low[1:], "9" * rest)})']
    if int(high[0]) - int(low[0]) > 1:
        ways.append(f"{_digit(str(int(low[0]) + 1), str(int(high[0]) - 1))}{_any(rest)}")
    ways.append(f'"{high[0]}" ({_same_length("0" * rest, high[1:])})')
    return " | ".join(ways)


def _digit(low: str, high: str) -> str:
    return f'"{low}"' if low == high else f"[{low}-{high}]"


def _any(count: int) -> str:
    return f" [0-9]{{{count}}}" if count else ""
