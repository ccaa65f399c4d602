"""Packs the wheel: a build backend (PEP 517) of the standard library alone.

It takes the tree that `make parts` has put in place: the directory that WHICHFS_ROOT names, by default
target/packages/root. Names are sorted and dates are those of SOURCE_DATE_EPOCH (by default the start of 1980), so the
same tree gives the same bytes.
"""

import base64
import hashlib
import os
import re
import struct
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE", "OFFER", "third-party-crates", "third-party-userland", "kernel")
# What users may install beside it (`pip install 'whichfs[plot]'`): the package itself needs Python alone.
EXTRAS = {
    "pandas": ("pandas",),
    "polars": ("polars",),
    "plot": ("matplotlib>=3.6",),
    "cluster": ("distributed>=2023.3", "dask-jobqueue>=0.8", "asyncssh"),
    "notebook": ("pandas", "matplotlib>=3.6", "ipykernel"),
}
# The first date that a zip archive knows.
EARLIEST = 315532800
# The oldest C library that a policy of PyPI names, and the newest that a wheel of ours may ask for.
OLDEST, NEWEST = (2, 17), (2, 36)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Makes the wheel in `wheel_directory` and gives its name."""
    del config_settings, metadata_directory
    root = Path(os.environ.get("WHICHFS_ROOT") or SOURCE / "target/packages/root") / "usr"
    if not (root / "lib/whichfs/manifest").is_file():
        raise SystemExit(f"wheel: error: {root} has no parts\nwheel: remedy: make parts")
    version = re.search(r'(?m)^version = "(.*)"', (SOURCE / "Cargo.toml").read_text()).group(1)
    info = f"whichfs-{version}.dist-info"
    tags = platforms(root / "lib/whichfs")
    files = {f"whichfs/{path.name}": (path.read_bytes(), 0o644)
             for path in (HERE / "whichfs").iterdir() if path.is_file()}
    files.update(tree(root / "lib/whichfs", "whichfs/lib"))
    files.update(tree(root / "share/man", f"whichfs-{version}.data/data/share/man"))
    for name in LICENCES:
        files.update(tree(root / "share/doc/whichfs" / name, f"{info}/licenses/{name}"))
    files[f"{info}/METADATA"] = (metadata(version).encode(), 0o644)
    files[f"{info}/WHEEL"] = (wheel(tags).encode(), 0o644)
    files[f"{info}/entry_points.txt"] = (b"[console_scripts]\nwhichfs = whichfs._program:main\n", 0o644)
    name = f"whichfs-{version}-py3-none-{'.'.join(tags)}.whl"
    write(Path(wheel_directory) / name, files, f"{info}/RECORD")
    return name


def build_sdist(sdist_directory, config_settings=None):
    """There is none: the source is a Rust workspace and a kernel."""
    raise SystemExit("wheel: error: no source distribution is made of whichfs: build it from its repository")


def tree(path, name):
    """Files at or below `path` under `name`, with their bytes and modes."""
    if path.is_file():
        return {name: (path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)}
    found = {}
    for below in path.iterdir():
        found.update(tree(below, f"{name}/{below.name}"))
    return found


def platforms(directory):
    """The platforms on which all programs in `directory` run, told by the versions of the C library that they name."""
    wanted = []
    for path in sorted(directory.rglob("*")):
        head = path.open("rb").read(20) if path.is_file() else b""
        # Programs of this processor; modules are relocatable files, and agents of boards are for others.
        if head[:5] != b"\x7fELF\x02" or struct.unpack("<HH", head[16:20]) not in ((2, 62), (3, 62)):
            continue
        content = path.read_bytes()
        if interpreter(content):
            found = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?=[.\0])", content)
            wanted += [(int(major), int(minor)) for major, minor in found] or [NEWEST]
    if not wanted:
        return ["manylinux2014_x86_64", "manylinux_2_17_x86_64", "musllinux_1_1_x86_64"]
    version = max(OLDEST, *wanted)
    if version > NEWEST:
        raise SystemExit(f"wheel: error: a program wants version {version} of the C library: build on Debian 12")
    return [f"manylinux_{version[0]}_{version[1]}_x86_64"]


def interpreter(content):
    """Whether the ELF file names a loader of shared libraries."""
    PT_INTERP = 3
    start, = struct.unpack("<Q", content[32:40])
    size, count = struct.unpack("<HH", content[54:58])
    kinds = (struct.unpack("<I", content[at:at + 4])[0] for at in range(start, start + size * count, size))
    return PT_INTERP in kinds


def metadata(version):
    """The file METADATA."""
    extras = "".join(f"Provides-Extra: {extra}\n" + "".join(f'Requires-Dist: {one}; extra == "{extra}"\n' for one in needed)
                     for extra, needed in EXTRAS.items())
    return f"""Metadata-Version: 2.1
Name: whichfs
Version: {version}
Summary: Which filesystem, tuned how, for an SD card, eMMC or USB stick
License: (MIT OR Apache-2.0) AND GPL-2.0-only
Requires-Python: >=3.8
{extras}Description-Content-Type: text/markdown

{(HERE / "README.md").read_text()}"""


def wheel(tags):
    """The file WHEEL."""
    lines = [f"Tag: py3-none-{tag}" for tag in tags]
    return "\n".join(["Wheel-Version: 1.0", "Generator: whichfs", "Root-Is-Purelib: false", *lines, ""])


def write(path, files, record):
    """Writes the archive with its list, in the order of the names, the list last."""
    date = time.gmtime(max(EARLIEST, int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST))))[:6]
    rows = []
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, content, mode):
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)

        for name, (content, mode) in sorted(files.items()):
            add(name, content, mode)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(content)}\n")
        add(record, "".join(rows) + f"{record},,\n", 0o644)
    part.rename(path)
