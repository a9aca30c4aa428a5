"""`python -m weft_cli` is the command `weft`."""

import sys


def main() -> int:
    """The exit status. The version is told without loading anything."""
    if sys.argv[1:] in (["--version"], ["-V"], ["version"]):
        from importlib.metadata import version

        print(f"weft {version('weft-cli')}")
        return 0
    from weft_cli.main import main as commands

    return commands()


if __name__ == "__main__":
    sys.exit(main())
