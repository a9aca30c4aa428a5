"""`python -m weft_cli` is the command `weft`."""

import sys


def main() -> int:
    """The exit status. The version is told without loading anything."""
    if sys.argv[1:] in (["--version"], ["-V"], ["version"]):
        from importlib.metadata import version

        print(f"weft {version('weft-cli')}")
        return 0
    if sys.argv[1:2] == ["worker"]:
        import signal

        # It becomes a worker's supervisor, which starts its agent anew at this signal: that isn't to kill it before.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    from weft_cli.main import main as commands

    return commands()


if __name__ == "__main__":
    sys.exit(main())
