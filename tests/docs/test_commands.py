"""Commands that pages name in their text are ones that their parsers take: verbs, options, choices, how many
arguments. None is run; those of blocks that begin with ``$ isam`` are, by ``test_blocks``."""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

from isam.cli.app import USAGE, app

from .test_named import PAGES

SPAN = re.compile(r"`((?:isam|python -m (?:benchmarks|tests))\b[^`]*)`")


def commands(text: str) -> set[str]:
    return {" ".join(c.split()) for c in SPAN.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))}


COMMANDS = sorted(set().union(*(commands(p.read_text("utf-8")) for p in PAGES)))
VERBS = [c for c in COMMANDS if c.startswith("isam ")]
MODULES = [c for c in COMMANDS if c.startswith("python ")]
OTHER = {"isam --traceback VERB ...", "isam --version", "isam VERB --help", "isam bound"}  # any verb, none, a column
LACKING = re.compile("the following arguments are required|requires an argument|expected one argument")


class Parsed(Exception):
    """What the arguments are has been seen; nothing further is to happen."""


def taken_by_isam(arguments: list[str]) -> None:
    """Raises an error of usage unless the verb takes the arguments; those that are lacking are not missed."""
    command, context = typer.main.get_command(app), None
    while arguments and hasattr(command, "resolve_command"):
        context = typer.Context(command, context)
        _, command, arguments = command.resolve_command(context, arguments)
    try:
        command.make_context(command.name, arguments, context)
    except USAGE as e:
        if not LACKING.search(str(e)) and type(e).__name__ not in ("MissingParameter", "NoArgsIsHelpError"):
            raise


def taken_by_module(module: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises ``SystemExit`` unless the module's parser takes the arguments; those that are lacking are not missed."""
    take = argparse.ArgumentParser.parse_args

    def parse(self: argparse.ArgumentParser, args: list[str] | None = None, _: object = None) -> None:
        take(self, args)
        raise Parsed

    def error(_: argparse.ArgumentParser, message: str) -> None:
        raise Parsed if LACKING.search(message) else SystemExit(message)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    monkeypatch.setattr(argparse.ArgumentParser, "error", error)
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    for name in (module, f"{module}.__main__"):  # run anew, whoever has imported it
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(Parsed):
        runpy.run_module(module, run_name="__main__", alter_sys=False)


def source(module: str) -> str:
    """The text of what ``python -m`` runs; fails where there is no such module."""
    name = f"{module}.__main__" if find_spec(module).submodule_search_locations else module
    return Path(find_spec(name).origin).read_text("utf-8")


@pytest.mark.parametrize("command", VERBS)
def test_isam_takes_every_command_that_a_page_names(command: str) -> None:
    if command not in OTHER:
        taken_by_isam(shlex.split(command)[1:])


def has_parser(command: str) -> bool:
    return "argparse" in source(shlex.split(command)[2])


@pytest.mark.parametrize("command", [c for c in MODULES if has_parser(c)])
def test_a_module_takes_every_command_that_a_page_names(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, module, *arguments = shlex.split(command)
    taken_by_module(module, arguments, monkeypatch)


def test_few_modules_read_their_arguments_without_a_parser() -> None:
    """What these take is not looked over; they are programs for those who test ISAM, but for two without arguments."""
    bare = {shlex.split(c)[2] for c in MODULES if not has_parser(c)}
    assert {m for m in bare if not m.startswith("tests.")} == {"benchmarks.best_of", "benchmarks.table"}
    assert len(bare) < 25


@pytest.mark.parametrize("command", ["isam mpa KERNEL", "isam map KERNEL --certfy", "isam schedule k.isam --onto host",
                                     "isam run a.isam b.isam"])  # fmt: skip
def test_isam_takes_no_other(command: str) -> None:
    with pytest.raises(USAGE):
        taken_by_isam(shlex.split(command)[1:])


@pytest.mark.parametrize("command", ["benchmarks.compile_time --group nothing", "benchmarks.choices nothing",
                                     "benchmarks.run --onyl gru"])  # fmt: skip
def test_modules_take_no_other(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, *arguments = shlex.split(command)
    with pytest.raises(SystemExit):
        taken_by_module(module, arguments, monkeypatch)


def test_there_are_many() -> None:
    assert len(VERBS) > 40
    assert len(MODULES) > 60
