"""`python -m weft_cli.embedded OPTIONS`: the launcher of a mesh, which stays resident beside it."""

import sys

from weft_cli.embedded import launcher, up
from weft_cli.embedded.voice import Voice

if __name__ == "__main__":
    options, report_fd = launcher.parse(sys.argv[1])
    sys.exit(int(up.run(options, Voice(report_fd=report_fd))))
