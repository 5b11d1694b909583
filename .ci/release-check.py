"""Checks that what would be released is whole: ``python .ci/release-check.py``, from a checkout.

Builds the source archive and the wheel twice and compares their bytes; compares the wheel with the
tree, and the version wherever it stands; installs the wheel outside the tree, with the lowest and
with the newest versions of its libraries, and runs the demonstration from it; and looks for broken
links in the documentation if it has been built.  Nothing is uploaded.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]


_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version of Python as numbers, which sort."""
    return tuple(map(int, version.split(".")))


def run(*words: str | Path, **more: str) -> str:
    """Return what a command prints; a failure ends the check."""
    done = subprocess.run(
        list(map(str, words)),
        env={**os.environ, **more},
        cwd=more.get("HERE", ROOT),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"release-check: {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def fail_unless(condition: object, message: str) -> None:
    """End the check with a message if a condition does not hold."""
    if not condition:
        sys.exit(f"release-check: {message}")


def built(folder: Path) -> list[Path]:
    """Return the wheel and the source archive, the same bytes each time."""
    when = run("git", "log", "-1", "--format=%ct").strip()
    digests = []
    for turn in ("first", "second"):
        build = (sys.executable, "-m", "hatchling", "build", "-d", folder / turn)
        run(*build, SOURCE_DATE_EPOCH=when)
        files = sorted((folder / turn).iterdir())
        digests.append({f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files})
    fail_unless(digests[0] == digests[1], f"two builds differ: {digests}")
    fail_unless(len(digests[0]) == 2, f"a build must make two files, got {list(digests[0])}")
    return sorted((folder / "first").iterdir(), key=lambda file: file.suffix != ".whl")


def check_contents(wheel: Path, version: str) -> None:
    """Compare the files and the metadata of a wheel with the tree."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        about = f"bayesrisk_disclosure-{version}.dist-info"
        metadata = Parser().parsestr(archive.read(f"{about}/METADATA").decode())
    tracked = run("git", "ls-files", "bayesrisk", "data/samples").splitlines()
    moved = {f.replace("data/samples/", "bayesrisk/_samples/", 1) for f in tracked}
    others = {name for name in names - moved if not name.startswith(about)}
    fail_unless(moved <= names, f"the wheel lacks {sorted(moved - names)[:5]}")
    fail_unless(not others, f"the wheel has what the tree has not: {sorted(others)[:5]}")
    fail_unless(f"{about}/licenses/LICENSE" in names, "the wheel lacks the licence")
    fail_unless(metadata["Version"] == version, f"the metadata have {metadata['Version']}")
    links = metadata.get_all("Project-URL") or []
    fail_unless(all("https://" in link for link in links), f"links must be https, got {links}")


def check_version(version: str) -> None:
    """Compare the version with those of the changelog and of the citation."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.search(r"^## \[(\d[^]]*)\] - (\d{4}-\d{2}-\d{2})$", changes, re.M)
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    fail_unless(dated and dated[1] == version, f"CHANGELOG.md has no dated section of {version}")
    for line in (f'version: "{version}"', f'date-released: "{dated[2]}"'):
        fail_unless(line in cited, f"CITATION.cff lacks {line}")


def check_demo(uv: str, wheel: Path, python: str, resolution: str, folder: Path) -> None:
    """Install a wheel far from the tree, and run the demonstration's audit from it."""
    place = folder / f"{Path(python).name}-{resolution}"
    run(uv, "venv", "--quiet", "--python", python, place)
    own = place / "bin" / "python"
    run(uv, "pip", "install", "--quiet", "--python", own, "--resolution", resolution, wheel)
    outside = {"HERE": str(folder), "PYTHONPATH": "", "NUMBA_CACHE_DIR": str(place / "numba")}
    where = run(own, "-c", "import bayesrisk; print(bayesrisk.__file__)", **outside)
    fail_unless(str(place) in where, f"the tree was imported instead of the wheel: {where}")
    audit = ("audit", "sample:small-town-audit", "-o", place / "audit", "--quiet")
    run(place / "bin" / "bayesrisk", *audit, **outside)
    fail_unless((place / "audit" / "report.html").is_file(), "the demonstration left no report")
    print(f"demonstration from the wheel: {python}, {resolution} versions")


class Links(HTMLParser):
    """Targets of a page, and the names to which one can link in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the target and the name of a tag."""
        given = {name: value for name, value in attrs if value}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        self.targets += [given[name] for name in ("href", "src") if name in given]


def check_links(folder: Path) -> None:
    """Look for each target inside the documentation, and for the place in its page."""
    pages = {page: Links(page) for page in sorted(folder.rglob("*.html"))}
    broken = []
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            to = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            known = pages[to].names if to in pages else None
            missing = known is not None and parts.fragment and parts.fragment not in known
            if not to.exists() or missing:
                broken.append(f"{page.relative_to(folder)}: {target}")
    fail_unless(not broken, f"{len(broken)} broken links: {broken[:5]}")
    print(f"links of {len(pages)} pages of the documentation")


def main() -> None:
    """Run all checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pythons", nargs="*", default=[sys.executable])
    parser.add_argument("--uv", help="the installer uv; without it nothing is installed")
    options = parser.parse_args()
    version = re.search(r'"(.+)"', (ROOT / "bayesrisk/_version.py").read_text().split("=")[1])[1]
    check_version(version)
    print(f"version {version} wherever it stands")
    with tempfile.TemporaryDirectory(prefix="bayesrisk-release-") as name:
        wheel, _ = built(Path(name))
        print("two builds, the same bytes")
        check_contents(wheel, version)
        print("contents and metadata of the wheel")
        for python in options.pythons if options.uv else ():
            for resolution in ("lowest-direct", "highest"):
                check_demo(options.uv, wheel, python, resolution, Path(name))
        tried = sorted({run(p, "-c", _VERSION).strip() for p in options.pythons}, key=_numbers)
        if _numbers(tried[-1]) <= (3, 11):
            print(f"no Python newer than {tried[-1]} was tried: PYTHONS=python3.13 names one")
    pages = ROOT / "docs/_build/html"
    if pages.is_dir():
        check_links(pages.resolve())
    else:
        print("documentation is not built: make docs")


if __name__ == "__main__":
    main()
