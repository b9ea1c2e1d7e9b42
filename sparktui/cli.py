"""The command line: subcommands and exit codes. A command's module is imported when it is called for.

Exit codes: 0 good, 1 the thing asked about is not so, 2 wrong usage or profile, 3 a server or tool that is
needed is not there, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from sparktui import __version__

# command -> (module, help); a module registers all of its commands
_COMMANDS = {
    "attach": ("app", "the app on a server that runs already: sparktui attach URL"),
    "open": ("app", "the app; the word can be left out: sparktui [PROFILE[:VARIANT]]"),
    "demo": ("ab", "the A/B on the stand-in server: no GPU, no model, a minute"),
    "ab": ("ab", "does speculation pay? boots both arms, measures, says so with an interval"),
    "run": ("run", "launch a profile and watch it"),
    "list": ("profiles", "the profiles that a name can find"),
    "show": ("profiles", "the exact command of a profile"),
    "ps": ("runs", "what runs"),
    "jobs": ("runs", "what is being measured, and how far it is"),
    "logs": ("runs", "a run's server log"),
    "stop": ("runs", "stop a run: load, server and all, verified"),
    "once": ("runs", "one snapshot of a run, for scripts and status lines"),
    "load": ("load", "load and figures without a profile: sparktui load URL -c N -d SECONDS"),
    "probe": ("probe", "does the prefix cache of a server serve? the same request three times"),
    "explain": ("explain", "what a boot log of vLLM says: sparktui explain LOG"),
    "diff": ("explain", "what a boot log says that another one doesn't: sparktui diff LOG_A LOG_B"),
    "sim": ("", "the stand-in server: sparktui sim serve MODEL [vLLM flags]"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["sim"]:
        from sparktui.sim.cli import main as sim

        return sim(args[1:])
    parsed = _parser(args).parse_args(_with_command(args))
    from sparktui.client.link import HostGone
    from sparktui.commands.launch import Missing, Usage
    from sparktui.commands.output import complain
    from sparktui.profile.problems import ProfileError
    from sparktui.rundir import RunError

    try:
        return int(parsed.run(parsed))
    except (ProfileError, Usage, RunError) as exc:
        complain(str(exc))
        return 2
    except HostGone as exc:
        complain(str(exc))
        return 1
    except Missing as exc:
        complain(str(exc))
        return 3
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `sparktui logs … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _with_command(args: list[str]) -> list[str]:
    """A bare ``sparktui`` and ``sparktui PROFILE`` mean ``open``."""
    if not args or (not args[0].startswith("-") and args[0] not in _COMMANDS):
        return ["open", *args]
    return args


def _parser(args: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sparktui",
        description="Launch, watch and A/B a vLLM server: does speculative decoding pay here?",
    )
    parser.add_argument("--version", action="version", version=f"sparktui {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    command = next((arg for arg in _with_command(list(args)) if not arg.startswith("-")), "")
    wanted = _COMMANDS.get(command, ("", ""))[0]
    if wanted:
        importlib.import_module(f"sparktui.commands.{wanted}").add_arguments(subparsers)
    for name, (module, text) in _COMMANDS.items():
        if module != wanted or not wanted:
            subparsers.add_parser(name, help=text)
    return parser


if __name__ == "__main__":
    sys.exit(main())
