"""What a mesh does on a disk with little room: the steps of `test_little_disk.py`, run where a file system of their own
lies under a folder, by a user without rights. The steps alone may change that file system's size.

    python little_disk.py STEPS FOLDER
"""

import os
import subprocess
import sys
from pathlib import Path

from weft_testing.story import MeshUnderTest, until

MIB = 1 << 20
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
    steps, disk = {"small": small, "shrinking": shrinking}[sys.argv[1]], Path(sys.argv[2])
    with_mesh = MeshUnderTest(disk, inside=lambda command: [*WITHOUT_RIGHTS, *command])
    try:
        steps(with_mesh, disk)
    finally:
        (disk / "ballast").unlink(missing_ok=True)
        with_mesh.close()
