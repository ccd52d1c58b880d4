"""The manuals of the benchmark: Debian packages with pages of many generators, and how they are fetched."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Manual:
    """A manual in a Debian package.

    Args:
        name: As in tables.
        package: The package, and
        version: its version that the questions are about.
        root: Folder of the pages in it.
        generator: What made the pages.
        licence: Of the texts.
        split: ``"open"`` for looking at and choosing, ``"test"`` for measuring only.
        faq: Pages whose headings are questions, as patterns below the root.
        pages: Pages of the manual, as patterns below the root.
        language: Of its texts.
    """

    name: str
    package: str
    version: str
    root: str
    generator: str
    licence: str
    split: str
    faq: tuple[str, ...] = ()
    pages: tuple[str, ...] = ("**/*.html",)
    language: str = "en"


_DJANGO: Final = ("faq", "howto", "internals", "intro", "misc", "ref", "topics")
_PYTHON: Final = (
    "c-api",
    "extending",
    "faq",
    "howto",
    "installing",
    "library",
    "reference",
    "tutorial",
    "using",
)
MANUALS: Final = (
    Manual(
        name="git",
        package="git-doc",
        version="1:2.39.5-0+deb12u3",
        root="usr/share/doc/git-doc",
        generator="AsciiDoc",
        licence="GPL-2",
        split="open",
        faq=("gitfaq.html",),
    ),
    Manual(
        name="borg",
        package="borgbackup-doc",
        version="1.2.4-1",
        root="usr/share/doc/borgbackup/html",
        generator="Sphinx",
        licence="BSD-3-Clause",
        split="test",
        faq=("faq.html",),
    ),
    Manual(
        name="slurm",
        package="slurm-wlm-doc",
        version="22.05.8-4+deb12u3",
        root="usr/share/doc/slurm-wlm/html",
        generator="by hand",
        licence="GPL-2+ with OpenSSL exception",
        split="test",
        faq=("faq.html",),
    ),
    Manual(
        name="debian-faq",
        package="debian-faq",
        version="11.1",
        root="usr/share/doc/debian/FAQ",
        generator="DocBook XSL",
        licence="verbatim copies, changed ones under the same terms",
        split="test",
        faq=("*.en.html",),
        pages=("*.en.html",),
    ),
    Manual(
        name="privoxy",
        package="privoxy",
        version="3.0.34-1",
        root="usr/share/doc/privoxy",
        generator="DSSSL",
        licence="GPL-2+",
        split="test",
        faq=("faq/*.html",),
    ),
    Manual(
        name="mkdocs",
        package="mkdocs-doc",
        version="1.4.2+dfsg-2",
        root="usr/share/doc/mkdocs/html",
        generator="MkDocs",
        licence="BSD-2-Clause",
        split="test",
    ),
    Manual(
        name="libvirt",
        package="libvirt-doc",
        version="9.0.0-4+deb12u2",
        root="usr/share/doc/libvirt-doc/html",
        generator="Docutils",
        licence="LGPL-2.1+",
        split="test",
    ),
    Manual(
        name="exim",
        package="exim4-doc-html",
        version="4.96-1",
        root="usr/share/doc/exim4-doc-html",
        generator="xfpt",
        licence="GPL-2+",
        split="test",
    ),
    Manual(
        name="celery",
        package="python-celery-doc",
        version="5.2.6-5",
        root="usr/share/doc/python-celery-doc/html",
        generator="Sphinx",
        licence="CC-BY-SA-4.0",
        split="test",
        faq=("faq.html",),
    ),
    Manual(
        name="ikiwiki",
        package="ikiwiki",
        version="3.20200202.3-1",
        root="usr/share/doc/ikiwiki/html",
        generator="ikiwiki",
        licence="GPL-2+",
        split="test",
    ),
    Manual(
        name="sqlite",
        package="sqlite3-doc",
        version="3.40.1-2+deb12u2",
        root="usr/share/doc/sqlite3",
        generator="SQLite's own",
        licence="public domain",
        split="test",
        faq=("faq.html",),
        pages=("*.html", "c3ref/*.html", "session/*.html", "syntax/*.html"),
    ),
    Manual(
        name="django",
        package="python-django-doc",
        version="3:3.2.25-0+deb12u7",
        root="usr/share/doc/python-django-doc/html",
        generator="Sphinx",
        licence="BSD-3-Clause",
        split="test",
        faq=("faq/*.html",),
        pages=tuple(
            f"{folder}/**/*.html"
            for folder in ("faq", "howto", "internals", "intro", "misc", "ref", "topics")
        ),
    ),
    Manual(
        name="postfix",
        package="postfix-doc",
        version="3.7.11-0+deb12u1",
        root="usr/share/doc/postfix/html",
        generator="postlink",
        licence="EPL-2.0 or IPL-1.0",
        split="test",
    ),
    Manual(
        name="python",
        package="python3.11-doc",
        version="3.11.2-6+deb12u9",
        root="usr/share/doc/python3.11/html",
        generator="Sphinx",
        licence="PSF-2.0",
        split="test",
        faq=("faq/*.html",),
        pages=tuple(f"{folder}/*.html" for folder in _PYTHON),
    ),
    Manual(
        name="gimp",
        package="gimp-help-en",
        version="2.10.34-2",
        root="usr/share/gimp/2.0/help/en",
        generator="DocBook XSL",
        licence="GFDL-1.2+",
        split="test",
        pages=("*.html",),
    ),
    Manual(
        name="scrapy",
        package="python-scrapy-doc",
        version="2.8.0-2",
        root="usr/share/doc/python-scrapy-doc/html",
        generator="Sphinx",
        licence="BSD-3-Clause",
        split="test",
        faq=("faq.html",),
        pages=("intro/*.html", "topics/*.html", "faq.html"),
    ),
    Manual(
        name="krb5",
        package="krb5-doc",
        version="1.20.1-2+deb12u5",
        root="usr/share/doc/krb5-doc",
        generator="Sphinx",
        licence="MIT",
        split="test",
    ),
    Manual(
        name="gnucash",
        package="gnucash-docs",
        version="4.13-1",
        root="usr/share/doc/gnucash-docs/gnucash-guide-en",
        generator="DocBook XSL",
        licence="GFDL-1.1+",
        split="test",
        pages=("*.html",),
    ),
    Manual(
        name="handbook",
        package="debian-handbook",
        version="11.20220922",
        root="usr/share/doc/debian-handbook/html/en-US",
        generator="Publican",
        licence="GPL-2+ or CC-BY-SA-3.0",
        split="test",
        pages=("*.html",),
    ),
    Manual(
        name="bind9",
        package="bind9-doc",
        version="1:9.18.49-1~deb12u3",
        root="usr/share/doc/bind9-doc/arm",
        generator="Sphinx",
        licence="MPL-2.0",
        split="test",
        pages=("*.html",),
    ),
    Manual(
        name="apache",
        package="apache2-doc",
        version="2.4.71-1~deb12u1",
        root="usr/share/doc/apache2-doc/manual/en",
        generator="Apache's own",
        licence="Apache-2.0",
        split="test",
        faq=("faq/*.html",),
    ),
    Manual(
        name="postgresql",
        package="postgresql-doc-15",
        version="15.20-0+deb12u1",
        root="usr/share/doc/postgresql-doc-15/html",
        generator="DocBook XSL",
        licence="PostgreSQL",
        split="open",
        pages=("*.html",),
    ),
    Manual(
        name="zsh",
        package="zsh-doc",
        version="5.9-4",
        root="usr/share/doc/zsh-common/html",
        generator="Yodl and Texinfo",
        licence="zsh's own, like MIT",
        split="test",
        pages=("[!F]*.html", "F[!A]*.html", "FAQ0*.html"),
    ),
    *(
        Manual(
            name=f"faq-{language}",
            package=f"debian-faq-{code}",
            version="11.1",
            root=f"usr/share/doc/debian/FAQ/{code}",
            generator="DocBook XSL",
            licence="verbatim copies, changed ones under the same terms",
            split="test",
            pages=("*.html",),
            language=language,
        )
        for language, code in (("de", "de"), ("fr", "fr"), ("ja", "ja"), ("ru", "ru"), ("zh", "zh-cn"))
    ),
)


def unpack(manual: Manual, packages: Path, folder: Path) -> Path:
    """Unpack a manual's package, which is downloaded if it is not in ``packages``, and return its root."""
    packages.mkdir(parents=True, exist_ok=True)
    if not list(packages.glob(f"{manual.package}_*.deb")):
        wanted = f"{manual.package}={manual.version}"
        subprocess.run(["apt-get", "download", wanted], cwd=packages, check=True, capture_output=True)
    target = folder / manual.package
    folder.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        package = next(packages.glob(f"{manual.package}_*.deb"))
        subprocess.run(["dpkg-deb", "-x", package, target], check=True)
    return target / manual.root


def list_pages(manual: Manual, root: Path) -> list[Path]:
    """The pages of a manual, in order."""
    return sorted({page for pattern in manual.pages for page in root.glob(pattern) if page.is_file()})


def copy_pages(manual: Manual, root: Path, folder: Path) -> Path:
    """Copy the pages of a manual, without other languages and formats."""
    for page in list_pages(manual, root):
        target = folder / page.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, target)
    return folder
