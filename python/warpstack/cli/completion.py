"""``warpstack completion``: a script with which a shell completes commands, options and names."""

from __future__ import annotations

import argparse

import warpstack as ws

SUMMARY = "a script for completion in bash or zsh: source <(warpstack completion bash)"

#: Options whose values are names that the program knows.
_FUNCTION = """
_warpstack() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=
    case "${COMP_WORDS[1]} $before" in
%s
    *)
        if [[ $COMP_CWORD == 1 ]]; then
            words="%s"
        elif [[ $word == -* ]]; then
            case "${COMP_WORDS[1]}" in
%s
            esac
        fi ;;
    esac
    [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _warpstack warpstack
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("shell", choices=("bash", "zsh"), help="the shell that reads the script")


def run(arguments: argparse.Namespace) -> None:
    """Print the script, made of the parsers of all commands."""
    from warpstack.cli.common.option_values import option_words
    from warpstack.cli.registry import commands_of, make_parser
    from warpstack.models import prediction

    known = {
        "gpu": ws.gpus(),
        "models": [*prediction.names(), "all"],
        "workload": ws.workloads.names(),
        "machine_code": ws.workloads.machine_codes(),
        "axis": [f"{field}=" for field in ws.Gpu.fields()],
    }
    commands = commands_of(make_parser())
    values, options = [], []
    for name, parser in commands.items():
        known["option_values"] = option_words(parser)
        flags: list[str] = []
        for action in parser._actions:
            flags += action.option_strings
            words = list(action.choices or known.get(action.dest, []))
            if action.option_strings and words and action.nargs != 0:
                cases = "|".join(f'"{name} {flag}"' for flag in action.option_strings)
                values.append(f'    {cases}) words="{" ".join(map(str, words))}" ;;')
        options.append(f'            {name}) words="{" ".join(flags)}" ;;')
    script = _FUNCTION % ("\n".join(values), " ".join(commands), "\n".join(options))
    if arguments.shell == "zsh":
        print("autoload -Uz compinit bashcompinit && compinit && bashcompinit", end="")
    print(script, end="")
