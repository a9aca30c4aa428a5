"""JSON itself as rules of a grammar, written compactly: at most one space after a comma or a colon."""

from typing import Final

from weft_engine.json_numbers import NUMBER

_DATE: Final = '[0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | "1" [0-9] | "2" [0-8])'
_TIME: Final = '("0" [0-9] | "1" [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})? "Z"'
CODE: Final = "([0-9a-cefA-CEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2})"
"""Behind `\\u`. Without the halves of a surrogate pair: one alone is no text."""
_BYTE: Final = '("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9]{2} | [1-9] [0-9] | [0-9])'
FORMATS: Final = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f'{_DATE} "T" {_TIME}',
    "uuid": '[0-9a-f]{8} "-" [0-9a-f]{4} "-" [0-9a-f]{4} "-" [0-9a-f]{4} "-" [0-9a-f]{12}',
    "ipv4": f'{_BYTE} "." {_BYTE} "." {_BYTE} "." {_BYTE}',
}
"""Days beyond the 28th are left out: a grammar can't count the days of months."""
GUIDED_FORMATS: Final = ("email", "hostname", "ipv6", "duration")
"""Formats that are left to llguidance."""

PARTS: Final = {
    "char": f'[^"\\\\\\x00-\\x1F\\x7F] | "\\\\" (["\\\\/bfnrt] | "u" {CODE})',
    "string": '"\\"" char* "\\""',
    "integer": '"-"? ("0" | [1-9] [0-9]{0,15})',
    "number": NUMBER,
    "boolean": '"true" | "false"',
    "null": '"null"',
    "comma": '"," " "?',
    "colon": '":" " "?',
    "pair": "string colon value",
    "object": '"{" (pair (comma pair)*)? "}"',
    "array": '"[" (value (comma value)*)? "]"',
    "value": "object | array | string | number | boolean | null",
}
"""JSON itself, and the pieces that other rules use."""
NEEDS: Final = {
    "string": ("char",),
    "pair": ("string", "colon", "value"),
    "object": ("pair", "comma"),
    "array": ("value", "comma"),
    "value": ("object", "array", "string", "number", "boolean", "null"),
}
TEXT: Final = "[^{ \\t\\r\\n] .*"
