"""The folder that a gateway serves to machines which are to join: each file under its digest, and the script.

It is made of a bundle where the operator has one; else of Weft's own packages alone, and the rest comes from a package
index.
"""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from weft_embedded.bundle import own_packages, scripts
from weft_embedded.bundle.contents import ABOUT, INSTALL, MODELS, OTHERS, BadBundle, Listed, checked, listed, sums
from weft_embedded.state import State, read_json, write_private

_MADE = ".install-"


def keep(state: State, authority: Path, bundle: Path | None) -> str:
    """See that the folder is there and up to date; the script's digest. Raises BadBundle, OSError."""
    pem = authority.read_text()
    source = None if bundle is not None else own_packages.installation()
    if source is not None and source.bundle is not None:
        bundle = source.bundle
    made_of = _made_of(pem, bundle, source)
    known = read_json(state.install_record) or {}
    found = known.get("script")
    if known.get("made_of") == made_of and isinstance(found, str) and (state.install / f"{found}.sh").is_file():
        return found
    # Of a launcher that was killed here; nobody else is, the state is locked.
    state.install_record.unlink(missing_ok=True)
    for left in state.folder.glob(f"{_MADE}*"):
        shutil.rmtree(left)
    state.install.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=state.folder, prefix=_MADE) as made:
        fresh = Path(made) / "served"
        fresh.mkdir(mode=0o700)
        if bundle is not None:
            script = _lay_out(bundle, checked(bundle, but=f"{MODELS}/"), pem, _machine(bundle), fresh)
        else:
            assert source is not None
            own = Path(made) / "bundle"
            own_packages.put(source, own)
            (own / "SHA256SUMS").write_text(sums(own))
            script = _lay_out(own, listed(own), pem, "", fresh)
        old = Path(made) / "old"
        if state.install.exists():
            os.rename(state.install, old)
        os.rename(fresh, state.install)
    write_private(state.install_record, json.dumps({"made_of": made_of, "script": script}) + "\n")
    return script


def _made_of(pem: str, bundle: Path | None, source: own_packages.Installation | None) -> str:
    if bundle is not None:
        what = str([(each.name, each.digest) for each in listed(bundle)])
    else:
        assert source is not None
        what = own_packages.fingerprint(source)
    template = scripts.from_gateway(pem, (), "")
    return hashlib.sha256(f"{template}{what}".encode()).hexdigest()


def _machine(bundle: Path) -> str:
    if not (bundle / OTHERS).is_dir():
        return ""
    for line in (bundle / ABOUT).read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "machine":
            return value
    raise BadBundle(f"{bundle / ABOUT} doesn't say for which machine it is")


def _lay_out(bundle: Path, files: tuple[Listed, ...], pem: str, made_for: str, to: Path) -> str:
    # Models come to a machine by the mesh itself.
    wanted = tuple(each for each in files if each.name != INSTALL and not each.name.startswith(f"{MODELS}/"))
    for each in wanted:
        target = to / each.digest / Path(each.name).name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            os.link(bundle / each.name, target)
        except OSError:  # another disk
            shutil.copyfile(bundle / each.name, target)
    text = scripts.from_gateway(pem, wanted, made_for)
    digest = hashlib.sha256(text.encode()).hexdigest()
    (to / f"{digest}.sh").write_text(text)
    return digest
