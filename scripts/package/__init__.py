"""The program maki for Python: `maki` and `python -m maki` run it, and run() returns what it reports."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

PROGRAM = str(Path(__file__).parent / "bin" / "maki")


class Error(Exception):
    """maki ended with an error: its sentence, and exit_code as docs/guide.md says."""

    def __init__(self, sentence, exit_code):
        super().__init__(sentence)
        self.exit_code = exit_code


def run(arguments):
    """Runs maki with these arguments, as run(["eval", "my-run"]).

    Returns what it reports: of a verb that has --json, the object, or a list if it prints several, otherwise the text
    that it prints. Progress goes to sys.stderr. Raises Error if maki fails.
    """
    arguments = [str(argument) for argument in arguments]
    if "--json" not in arguments and _has_json(arguments):
        arguments.append("--json")
    with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        printed = []
        reader = threading.Thread(target=lambda: printed.append(program.stdout.read()))
        reader.start()
        sentence = ""
        for line in program.stderr:
            sys.stderr.write(line)
            sentence = line.strip() or sentence
        reader.join()
    if program.returncode not in (0, 1):
        raise Error(sentence, program.returncode)
    if "--json" not in arguments:
        return printed[0]
    objects, rest = [], printed[0].strip()
    while rest:
        found, end = json.JSONDecoder().raw_decode(rest)
        objects.append(found)
        rest = rest[end:].lstrip()
    return objects[0] if len(objects) == 1 else objects


def _has_json(arguments):
    help_text = subprocess.run([PROGRAM, *arguments[:1], "--help"], stdout=subprocess.PIPE, text=True).stdout
    return "  --json " in help_text


def main():
    """Becomes the program, with the arguments of this process."""
    os.execv(PROGRAM, ["maki", *sys.argv[1:]])
