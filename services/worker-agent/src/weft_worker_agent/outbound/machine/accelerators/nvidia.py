"""NVIDIA: its driver, through NVML, asked by a process that may be given up; and boards that share their memory."""

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weft_worker_agent.domain.accelerators import Accelerator, Look
from weft_worker_agent.outbound.machine.accelerators import tool, tool_output
from weft_worker_agent.outbound.machine.accelerators.tool import NoAnswer
from weft_worker_agent.outbound.machine.accelerators.tool_output import Row
from weft_worker_agent.outbound.machine.accelerators.unified import Board

_PROBE = "weft_worker_agent.outbound.machine.accelerators.nvml_probe"
_DRIVERS = ("dev/nvidiactl", "dev/nvidia0", "dev/dxg", "dev/nvmap")
"""Where a driver shows itself: on Linux, under Windows' WSL, on Tegra."""
_SHARING = re.compile(r"\b(GB10|Thor|Orin|Xavier|Tegra)\b", re.IGNORECASE)
"""Names of chips whose processor and accelerator have one memory: for them NVML says NOT_SUPPORTED."""
_LINE_BYTES = 1 << 20
_NO_LIBRARY = "Shared Library Not Found"
"""In NVML's words for a driver without libnvidia-ml.so.1."""
_NO_UTILITY = "; a container gets that library where it is made with NVIDIA_DRIVER_CAPABILITIES=compute,utility"


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """One device's memory in bytes, and what each process holds of it; None: the driver doesn't say."""

    uuid: str
    total: int
    free: int
    processes: Mapping[int, int | None]


def driver_is_there(root: Path = Path("/")) -> bool:
    """Whether it is worth asking."""
    return any((root / place).exists() for place in _DRIVERS)


class Nvml:
    """The probe's process, started when it is first asked and anew after it was given up."""

    def __init__(self, timeout: float = tool.TIMEOUT_S) -> None:
        self._timeout = timeout
        self._process: asyncio.subprocess.Process | None = None
        self._asking = asyncio.Lock()

    async def look(self, board: Board | None = None) -> Look:
        """What devices there are. `board`: the board of this machine, if it is one that shares its memory."""
        try:
            return Look("nvidia", found_in(await self._ask("devices"), board))
        except NoAnswer as error:
            if board is not None:  # older ones have no NVML
                return Look("nvidia", (Accelerator("nvidia", 0, board.name, None, "", board.driver, None, True),))
            hint = _NO_UTILITY if _NO_LIBRARY in str(error) else ""
            return Look("nvidia", unknown=f"NVIDIA's driver is there and can't be asked: {error}{hint}")

    async def memory(self) -> tuple[DeviceMemory, ...]:
        """The devices' memory now. Raises NoAnswer."""
        return memory_in(await self._ask("memory"))

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            await tool.end(process)

    async def _ask(self, question: str) -> Row:
        async with self._asking:
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await self._answer(question)
            except TimeoutError:
                await self.close()
                raise NoAnswer(f"no answer within {self._timeout:g} s, it may hang") from None
            except (OSError, ValueError) as error:
                await self.close()
                raise NoAnswer(f"the process that asks it failed: {error}") from None
            except asyncio.CancelledError:
                with contextlib.suppress(Exception):
                    await self.close()
                raise
        if (error := tool_output.text(answer.get("error"))) is not None:
            await self.close()  # what was loaded of a driver that has changed since is of no use
            raise NoAnswer(error)
        return answer

    async def _answer(self, question: str) -> Row:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                _PROBE,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=tool.environment(),
                limit=_LINE_BYTES,
                start_new_session=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{question}\n".encode())
        await process.stdin.drain()
        line = await process.stdout.readline()
        if not line:
            raise ValueError(f"it ended with status {await process.wait()}")
        return tool_output.row(json.loads(line))


def found_in(answer: Row, board: Board | None) -> tuple[Accelerator, ...]:
    """The devices that an answer tells of."""
    found: list[Accelerator] = []
    for row in tool_output.rows(answer.get("devices")):
        name, memory = tool_output.text(row.get("name")) or "NVIDIA accelerator", tool_output.count(row.get("memory"))
        unified = memory is None and (board is not None or _SHARING.search(name) is not None)
        driver, capability = tool_output.text(row.get("driver")), tool_output.text(row.get("compute_capability"))
        uuid = tool_output.text(row.get("uuid")) or ""
        number, place = int(row.get("number") or 0), tool_output.pci(row.get("pci"))
        found.append(Accelerator("nvidia", number, name, memory, uuid, driver, capability, unified, pci=place))
    return tuple(found)


def memory_in(answer: Row) -> tuple[DeviceMemory, ...]:
    """The devices' memory that an answer tells of; those that it tells nothing useful of are left out."""
    found: list[DeviceMemory] = []
    for row in tool_output.rows(answer.get("memory")):
        uuid, total, free = tool_output.text(row.get("uuid")), tool_output.count(row.get("total")), row.get("free")
        if uuid is not None and total is not None and isinstance(free, int):
            processes = {
                int(pid): tool_output.count(held) for pid, held in tool_output.row(row.get("processes")).items()
            }
            found.append(DeviceMemory(uuid, total, free, processes))
    return tuple(found)
