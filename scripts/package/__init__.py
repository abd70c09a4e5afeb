"""The program maki for Python: `maki` and `python -m maki` run it, and run() returns what it reports."""

import itertools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

PROGRAM = str(Path(__file__).parent / "bin" / "maki")
# What maki prints is UTF-8 in every locale, but for names of files and bytes of a model that are not.
_TEXT = {"encoding": "utf-8", "errors": "replace"}

# By verb, the options that ask for another form of its result than --json, which the program refuses beside it; --lang
# is the language of a drawing.
_DRAWN = {"--out", "-o", "--text", "--csv", "--lang"}
_OTHER_FORMS = {"attend": _DRAWN, "positions": _DRAWN, "embed": {"--npy"}, "inspect": {"--csv"}}


class Error(Exception):
    """maki ended with an error: its sentence, and exit_code as docs/guide.md says."""

    def __init__(self, sentence, exit_code):
        super().__init__(sentence)
        self.exit_code = exit_code


def run(arguments):
    """Runs maki with these arguments, as run(["eval", "my-run"]).

    Returns what it reports: of a verb that has --json, the object, or a list if it prints several; otherwise, and if the
    arguments ask for another form such as --csv, the text that it prints. Progress goes to sys.stderr. Raises Error if
    maki fails; that gradcheck finds a wrong gradient is a result.
    """
    arguments = [str(argument) for argument in arguments]
    if "--json" not in arguments and _may_have_json(arguments):
        arguments.append("--json")
    with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **_TEXT) as program:
        printed = []
        reader = threading.Thread(target=lambda: printed.append(program.stdout.read()))
        reader.start()
        sentence = ""
        for line in program.stderr:
            sys.stderr.write(line)
            sentence = line.strip() or sentence
        reader.join()
    is_result = program.returncode == 0 or (program.returncode == 1 and printed[0])
    if not is_result:
        raise Error(sentence, program.returncode)
    if "--json" not in arguments:
        return printed[0]
    objects, rest = [], printed[0].strip()
    while rest:
        found, end = json.JSONDecoder().raw_decode(rest)
        objects.append(found)
        rest = rest[end:].lstrip()
    return objects[0] if len(objects) == 1 else objects


def _may_have_json(arguments):
    verbs = list(itertools.takewhile(lambda argument: not argument.startswith("-"), arguments))
    other_forms = _OTHER_FORMS.get(verbs[0] if verbs else "", ())
    if any(argument.partition("=")[0] in other_forms for argument in arguments):
        return False
    help_text = subprocess.run([PROGRAM, *verbs, "--help"], stdout=subprocess.PIPE, **_TEXT).stdout
    return "  --json " in help_text


def main():
    """Becomes the program, with the arguments of this process."""
    os.execv(PROGRAM, ["maki", *sys.argv[1:]])
