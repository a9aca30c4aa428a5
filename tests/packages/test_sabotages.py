"""The sabotages fit the tree as it is now; whether the stories notice them, `weft test --sabotage` tells."""

import subprocess
from pathlib import Path

from weft_devtools import sabotage

ROOT = Path(__file__).resolve().parents[2]


def test_every_story_has_a_sabotage_and_every_sabotage_applies() -> None:
    patches = [str(ROOT / sabotage.PATCHES / f"{each.name}.patch") for each in sabotage.find(ROOT)]
    assert patches
    said = [
        subprocess.run(
            ["git", "apply", "--check", "--whitespace=nowarn", patch],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        ).stderr
        for patch in patches
    ]
    assert {} == {patch: words for patch, words in zip(patches, said, strict=True) if words}
