"""What a mesh does on a disk with little room: the steps of `test_little_disk.py`, run where a file system of their own
lies under a folder, by a user without rights. The steps alone may change that file system's size.

    python little_disk.py STEPS FOLDER
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from weft_testing.story import MeshUnderTest, until

MIB = 1 << 20
ECHO = {"source": {"kind": "builtin", "name": "tiny"}, "engine": "echo", "context_tokens": 64, "concurrency": 2}
BUSY = {"source": {"kind": "simulated"}, "engine": "simulated"}
FILLS = 40
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--")


def small(mesh: MeshUnderTest, folder: Path) -> None:
    """A disk of 1 GB: a model outlives a failed revision, its engine's end, and an end of the mesh."""
    mesh.up()
    assert "Paris" in mesh.ask()
    the_model_outlives_a_failed_revision_and_its_engine(mesh)
    mesh.down()
    mesh.up()
    assert "Paris" in until("it answers again", mesh.ask, 60)


def the_model_outlives_a_failed_revision_and_its_engine(mesh: MeshUnderTest) -> None:
    failed = mesh.weft("deploy", "tiny", "--engine-arg", "bogus=1", timeout=120)
    assert 1 == failed.returncode, failed.stdout + failed.stderr
    assert "Paris" in mesh.ask()
    for host in mesh.hosts():
        host.kill()
        host.wait(30)
    assert "Paris" in until("it answers after its engine's end", mesh.ask, 60)


def shrinking(mesh: MeshUnderTest, folder: Path) -> None:
    """A state that was made on a disk of 4 GB, of which 300 MB are left, then nothing."""
    mesh.up()
    assert "Paris" in mesh.ask()
    mesh.down()
    resize(folder, used(folder) + 300_000_000)
    mesh.up()
    assert "Paris" in until("it answers on the smaller one", mesh.ask, 60)
    a_full_disk_is_named_and_holds_nothing_up(mesh, folder)
    it_ends_and_says_what_it_needs(mesh, folder)


def a_full_disk_is_named_and_holds_nothing_up(mesh: MeshUnderTest, folder: Path) -> None:
    head = mesh.events()[-1]["sequence"]
    # when others fill the disk but for what is kept, and then to the last byte
    for left in (30 * MIB, 0):
        fill(folder, left)
        until("the mesh says so", lambda: mesh.status()["log"]["full"])
        until("the log's limit is set", lambda: '"room": 0' in (mesh.state / "logs" / "registry.log").read_text())
        # then whoever asks for a change hears of it, and so does whoever looks
        deployed = mesh.weft("deploy", "tiny-embed")
        assert 1 == deployed.returncode
        assert "is full: the log takes nothing more with less than 64 MiB free" in deployed.stderr
        assert "accepted" not in deployed.stdout + deployed.stderr
        assert "is full" in mesh.weft("status").stdout
        assert "is full" in mesh.http.get(f"{mesh.url}/api/status?view=page").json()["mesh"]["problems"][0]
        doctor = mesh.weft("doctor")
        assert 1 == doctor.returncode
        assert "64 MiB free are needed and" in doctor.stdout
        # and what runs is served
        assert "Paris" in mesh.ask()
    # and when it has room again, the same change is taken, and nothing that was accepted is gone
    (folder / "ballast").unlink()
    assert until("a change is taken", lambda: 0 == mesh.weft("deploy", "tiny-embed", timeout=120).returncode, 60)
    events = [each["sequence"] for each in mesh.events()]
    assert list(range(1, events[-1] + 1)) == events
    assert events[-1] > head


def it_ends_and_says_what_it_needs(mesh: MeshUnderTest, folder: Path) -> None:
    fill(folder, 0)
    ended = mesh.weft("down", timeout=130)
    assert (0, "killed" in ended.stdout) == (0, False), ended.stdout + ended.stderr
    mesh.down()
    again = mesh.weft("up", "--detach", timeout=130)
    assert 1 == again.returncode
    assert "has too little room: 64 MiB free are needed and 0 MiB are" in again.stderr
    (folder / "ballast").unlink()
    mesh.up()
    assert "Paris" in until("it answers again", mesh.ask, 60)


def engines(mesh: MeshUnderTest, folder: Path) -> None:
    """Two workers, of which one has a disk of 24 MB for engines, and an engine of 48 MB that says nothing of it."""
    mesh.up()
    full = mesh.state / "workers" / "1" / "backends"
    full.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={24 * MIB},mode=700", "tmpfs", str(full)], check=True)
    assert 0 == mesh.weft("backends", "add", str(folder.parent / "echo.json")).returncode
    assert 0 == mesh.weft("nodes", "cordon", "worker-2").returncode
    an_install_that_fills_the_disk_is_named_and_leaves_nothing(mesh, full)
    # when another node takes replicas
    assert 0 == mesh.weft("nodes", "uncordon", "worker-2").returncode
    # then it goes there, and says why
    (moved,) = until("it serves elsewhere", lambda: mesh.ready_replicas("parrot"), 120)
    assert "worker-2" == moved["node_name"]
    assert "waits for room on worker-1" in " ".join(each["fact"]["why"] for each in mesh.facts("model", "scaled"))
    # when one may only go to the full disk
    pinned = {**ECHO, "selector": {"node.name": "worker-1"}}
    assert 201 == mesh.deploy("pinned", pinned).status_code
    # then it is not even begun there
    until("it has no place", lambda: "has too little disk to install it" in mesh.weft("status").stdout)
    begun = len(mesh.facts("run", "installing"))
    # and once there is room, it is there by itself
    resize(full, 512 * MIB)
    until("it serves, too", lambda: mesh.ready_replicas("pinned"), 120)
    assert begun + 1 == len(mesh.facts("run", "installing"))
    assert "warp and weft" == mesh.ask("warp and weft", "pinned")
    subprocess.run(["umount", "-l", str(full)], check=True)


def parts(mesh: MeshUnderTest, folder: Path) -> None:
    """The database and one of two workers have disks of their own, and one after the other is full."""
    disks = {name: mesh.state / name for name in ("postgres", "workers/1")}
    for disk in disks.values():
        disk.mkdir(parents=True, mode=0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={256 * MIB},mode=700", "tmpfs", str(disk)], check=True)
    mesh.up()
    mesh.deploy("busy", BUSY | {"selector": {"node.name": "worker-1"}}).raise_for_status()
    until("it serves", lambda: mesh.ready_replicas("busy"), 60)
    a_full_disk_of_the_database_holds_up_lists_alone(mesh, disks["postgres"])
    a_full_disk_of_a_worker_stops_nothing_that_runs_there(mesh, disks["workers/1"])
    for disk in disks.values():
        subprocess.run(["umount", "-l", str(disk)], check=True)


def a_full_disk_of_the_database_holds_up_lists_alone(mesh: MeshUnderTest, disk: Path) -> None:
    fill(disk, 0)
    # when so much happens that the database would have to write it down
    names = [f"m{number}" for number in range(FILLS)]
    for name in names:
        mesh.deploy(name, BUSY | {"min_replicas": 0}).raise_for_status()
    until("the tables are known to be away", lambda: mesh.status()["tables"]["state"] == "away", 60)
    assert not listed(mesh, names)
    # then models answer and are placed
    assert mesh.ask(model="busy", max_tokens=4)
    mesh.deploy("meanwhile", BUSY).raise_for_status()
    until("it serves", lambda: mesh.ready_replicas("meanwhile"), 60)
    # and with room again lists have all of it, by themselves
    (disk / "ballast").unlink()
    until("all is listed", lambda: listed(mesh, [*names, "meanwhile"]), 60)


def listed(mesh: MeshUnderTest, names: list[str]) -> bool:
    said = mesh.http.get(f"{mesh.url}/api/models?limit=500")
    return said.status_code == 200 and all(f'"{name}"' in said.text for name in names)


def a_full_disk_of_a_worker_stops_nothing_that_runs_there(mesh: MeshUnderTest, disk: Path) -> None:
    head = mesh.events()[-1]["sequence"]
    fill(disk, 0)
    until("it is seen to be full", lambda: mesh.ask(model="busy", max_tokens=4))
    # when something is to start there that needs a file
    mesh.deploy("pinned", BUSY | {"selector": {"node.name": "worker-1"}}).raise_for_status()
    # then what runs there answers, and is not moved
    ends = time.monotonic() + 8
    while time.monotonic() < ends:
        assert mesh.ask(model="busy", max_tokens=4)
        time.sleep(0.2)
    names = {each["id"] for each in mesh.ready_replicas("busy")}
    assert [] == [each for each in mesh.events(head) if each["key"] in names]
    # and with room again it starts
    (disk / "ballast").unlink()
    until("it serves", lambda: mesh.ready_replicas("pinned"), 120)
    assert mesh.ask(model="pinned", max_tokens=4)


def an_install_that_fills_the_disk_is_named_and_leaves_nothing(mesh: MeshUnderTest, full: Path) -> None:
    assert 201 == mesh.deploy("parrot", ECHO).status_code
    said = f"the disk of {full} was full"
    until("the status says it", lambda: "echo 1.0 could not be installed: the disk" in mesh.weft("status").stdout, 60)
    assert said in mesh.weft("explain", "parrot").stdout
    until("nothing half made stays", lambda: not [*full.glob(".making-*")] and not [*full.glob("echo-*/")])
    begun = len(mesh.facts("run", "installing"))
    time.sleep(5)  # of what is tried again and again there would be more by then
    assert begun == len(mesh.facts("run", "installing"))


def fill(folder: Path, left: int) -> None:
    """Write to a file until so many bytes are left of the disk."""
    disk = os.statvfs(folder)
    with (folder / "ballast").open("ab", buffering=0) as file:
        missing = disk.f_bavail * disk.f_frsize - left
        try:
            while missing > 0:
                missing -= file.write(bytes(min(missing, MIB)))
        except OSError:
            return  # there is nothing left, and that is what is wanted at most


def used(folder: Path) -> int:
    disk = os.statvfs(folder)
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize


def resize(folder: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


if __name__ == "__main__":
    steps, disk = (
        {"small": small, "shrinking": shrinking, "engines": engines, "parts": parts}[sys.argv[1]],
        Path(sys.argv[2]),
    )
    with_mesh = MeshUnderTest(
        disk,
        workers=2 if steps in (engines, parts) else 1,
        inside=lambda command: [*WITHOUT_RIGHTS, *command],
        **({"WEFT_INSTALL_OFFLINE": str(disk.parent / "wheels")} if steps is engines else {}),
    )
    try:
        steps(with_mesh, disk)
    finally:
        (disk / "ballast").unlink(missing_ok=True)
        with_mesh.close()
