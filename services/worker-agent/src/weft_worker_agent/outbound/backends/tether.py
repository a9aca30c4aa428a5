"""`python tether.py PARENT PROGRAM …`: becomes a program that is killed when its parent ends, however that ends.

Run by its path and without site packages: it must start within milliseconds. Linux alone has such a tie; elsewhere the
program goes on to its end, and the lock that it holds keeps its folder from being taken for left behind.
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent, then become the program."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):  # it ended before the line above could take effect
        os._exit(127)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
