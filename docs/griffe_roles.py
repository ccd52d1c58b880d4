"""Reads what packages export, and the roles of docstrings (``:meth:`open```) as links to the reference."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from griffe import Alias, AliasResolutionError, Extension, GriffeLoader, Module, NameResolutionError, Object

sys.path.insert(0, str(Path(__file__).parent))

from generate_api import modules

ROLE = re.compile(r":(class|meth|func|attr|data|mod|exc):`(~?)([\w.]+)`")


class Roles(Extension):
    """Turns roles into references that mkdocs-autorefs resolves, once a package is read.

    What is there but not public is shown as code. What is not there stays a reference, so that building
    the site fails.
    """

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **_: Any) -> None:
        """Note what each package exports, which its stub says, and rewrite the docstrings."""
        for module in _modules(pkg):
            if module.filepath.with_suffix(".pyi").exists():
                module.exports = [
                    name
                    for name, member in module.members.items()
                    if isinstance(member, Alias) and member.target_path.startswith(f"{pkg.path}.")
                ]
        public = _Public(loader)
        for obj in _objects(pkg):
            if obj.docstring is not None:
                obj.docstring.value = ROLE.sub(
                    lambda role, obj=obj: public.reference(obj, role), obj.docstring.value
                )


class _Public:
    """What the reference describes."""

    def __init__(self, loader: GriffeLoader) -> None:
        self._collection = loader.modules_collection
        self._modules = set(filter(self._is_there, modules()))
        self._paths = {path for name in self._modules for path in _described(self._collection[name])}

    def reference(self, obj: Object, role: re.Match[str]) -> str:
        """``[`name`][full.path]``; fields of dataclasses are described with their class."""
        kind, short, name = role.groups()
        shown = name.rpartition(".")[2] if short else name
        path = _resolved(obj, name.rpartition(".")[0] if kind == "attr" else name)
        return f"`{shown}`" if self._is_there(path) and not self._is_public(path) else f"[`{shown}`][{path}]"

    def _is_there(self, path: str) -> bool:
        try:
            return self._collection[path] is not None
        except (KeyError, AliasResolutionError):
            return False

    def _is_public(self, path: str) -> bool:
        return path in self._modules or any(
            path == known or path.startswith(f"{known}.") for known in self._paths
        )


def _modules(module: Module) -> Iterator[Module]:
    yield module
    for within in module.modules.values():
        if not isinstance(within, Alias):
            yield from _modules(within)


def _objects(obj: Object) -> Iterator[Object]:
    yield obj
    for member in obj.members.values():
        if not isinstance(member, Alias):
            yield from _objects(member)


def _described(module: Module) -> Iterator[str]:
    """The paths of a module's public names, both where they are and where they come from."""
    exported = None if module.exports is None else {str(name) for name in module.exports}
    for name, member in module.members.items():
        own = not isinstance(member, Alias) and not name.startswith("_")
        if own if exported is None else name in exported:
            yield f"{module.path}.{name}"
            yield member.target_path if isinstance(member, Alias) else member.path


def _resolved(obj: Object, name: str) -> str:
    """The full path of a name, as Python finds it where the docstring stands."""
    first, _, rest = name.partition(".")
    if rest and first == obj.package.name:
        return name  # absolute, also where a module of a package has the name of the whole
    try:
        found = obj.resolve(first)
    except NameResolutionError:
        return name
    return f"{found}.{rest}" if rest else found
