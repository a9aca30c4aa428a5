"""`python -m weft_embedded OPTIONS`: the launcher of a mesh, which stays resident beside it."""

import sys

from weft_embedded import launcher, up
from weft_embedded.launcher_output import LauncherOutput
from weft_embedded.service_manager import ServiceManager

if __name__ == "__main__":
    options, report_fd = launcher.parse(sys.argv[1])
    sys.exit(int(up.run(options, LauncherOutput(report_fd=report_fd, manager=ServiceManager()))))
