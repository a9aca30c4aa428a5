"""The engines of this node: those in environments of its own, and those that it installs; and what it says of itself by
them."""

from collections.abc import Callable, Mapping
from typing import Any

from weft_contracts.facts.machine import Reported
from weft_runtime import logs

from weft_worker_agent.inbound.backends_loop import told
from weft_worker_agent.outbound.backends.build_tools import tools_there
from weft_worker_agent.outbound.backends.environments import InstalledBackend
from weft_worker_agent.outbound.backends.installer import Installer
from weft_worker_agent.outbound.machine import inventory
from weft_worker_agent.outbound.machine.backends import environments
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.settings import WorkerSettings

_log: Any = logs.get_logger("weft.worker_agent")


class OwnEngines:
    """Looked up once; what is installed comes and goes."""

    def __init__(self, settings: WorkerSettings, changed: Callable[[], None]) -> None:
        """`changed` is called when an engine was installed, or could not be."""
        self._settings = settings
        own = environments(settings.backends)
        for fault in own.wrong:
            _log.warning("an engine's own environment is not used", reason=fault)
        for fault in inventory.engine_faults():
            _log.warning("an engine is not used", reason=fault)
        self.environments = own.found
        self.installer: Installer | None = None
        """None: this node installs none."""
        if settings.install == "all":
            self.installer = Installer(
                settings.backends_folder,
                settings.package_sources,
                silence_s=settings.install_silence,
                at_once=settings.install_at_once,
                jobs=settings.install_jobs or max(1, int(inventory.processors() / settings.parts)),
                changed=changed,
            )

    @property
    def installed(self) -> tuple[InstalledBackend, ...]:
        return self.installer.installed if self.installer is not None else ()

    @property
    def room(self) -> Mapping[str, int]:
        """What engines that the disk had too little for must have free, by recipe."""
        return self.installer.room if self.installer is not None else {}

    def report(self, hosts: Hosts) -> Reported:
        """What the node says of itself, without its accelerators."""
        settings = self._settings
        return inventory.report(
            settings.models or settings.store_folder,
            settings.parts,
            tuple(one.vendor for one in settings.use.simulated),
            self.environments,
            self.installed,
            settings.backends_folder if self.installer is not None else None,
            told(self.installed, hosts.environments),
            settings.package_sources.own_index(),
            self.room,
            tools_there(),
        )
