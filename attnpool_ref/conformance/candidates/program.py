"""A program under test: a process that is called in lines of JSON, and each of its functions as a Python callable.

``docs/protocol.md`` describes the lines. The process is started once, and again after it has died or broken the
protocol.
"""

import contextlib
import inspect
import itertools
import json
import queue
import shlex
import signal
import subprocess
import threading
import weakref
from typing import Any

import numpy as np

from attnpool_ref import contract, table
from attnpool_ref.conformance.candidates.adapters.program_arrays import DTYPES, ProtocolError, brief, decoded, encoded
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.candidates.candidate import MASK_FORMS
from attnpool_ref.conformance.candidates.chunks import oracle_of

VERSION = 1  # of the protocol
START_LIMIT = 30.0  # seconds that a program has to answer the first line
GRACE = 2.0  # seconds that a program has to end after it has closed its output
LONGEST = 2**26  # bytes of an answer; the largest result of a call has 2 MB
UNREAD = 4  # lines that are read ahead: a program that floods its output is not read any further
TAIL = 1000  # bytes of standard error that are shown when a program dies
ENCODINGS = ("base64", "data")  # of arrays, the faster one first
EXAMPLE = '{"functions": ["mean_pooling"], "dtypes": ["float32"]}'


class ProgramError(Exception):
    """Exception for an error that a program answers, or for a program that cannot be started or has died."""


class Program:
    """A process that runs a command.

    Attributes:
      command: the command line.
      name, version: what the program calls itself.
      functions: for each function the names of its parameters, or None for those of :func:`signature`.
      dtypes: the names of the floating dtypes that it takes.
      encodings: the encodings of arrays that it reads.
      mask_form: the form of its masks, one of ``MASK_FORMS``.
      ids: the numbers of further calls.
    """

    first_line = json.dumps({"attnpool": VERSION})

    def __init__(self, command, limit=START_LIMIT):
        """Starts the program, which has ``limit`` seconds for its first answer.

        Raises:
          ProgramError: the command cannot be started, or the program dies or does not answer.
          ProtocolError: the first answer lacks something, or has a name that does not exist.
        """
        self.command, self._limit, self.ids = command, limit, itertools.count(1)
        self._process: Any = None
        said = self._start()
        if not isinstance(said, dict) or not {"functions", "dtypes"} <= said.keys():
            raise ProtocolError(f"its first answer is {brief(said)}, needs `functions` and `dtypes`, as in {EXAMPLE}")
        self.name, self.version = str(said.get("name", command)), str(said.get("version", ""))
        self.functions = _functions(said["functions"])
        self.dtypes = _known(said["dtypes"], "dtypes", [name for name in DTYPES if "float" in name])
        self.encodings = _known(said.get("encodings", ["data"]), "encodings", ENCODINGS)
        (self.mask_form,) = _known([said.get("mask", "boolean")], "mask", MASK_FORMS)

    def callables(self, mask_form):
        """Returns the program's functions by name, as callables; ``mask_form`` is the form of their masks."""
        return {
            name: ProgramFunction(self, name, signature(name, mask_form, parameters))
            for name, parameters in self.functions.items()
        }

    def call(self, request):
        """Sends a call, and returns its results as NumPy arrays.

        Raises:
          ProgramError: the program answers an error, or dies.
          ProtocolError: the program answers something else. It is started again for the next call.
        """
        if self._process is None:
            self._start()
        if not self._lines.empty():
            raise self._stopped(ProtocolError, f"writes lines that answer no call: {_text(self._lines.get())}")
        self._write(json.dumps(request))
        answer = self._read(None)
        if not isinstance(answer, dict) or answer.get("id") != request["id"]:
            raise self._stopped(ProtocolError, f'answers {brief(answer)}, needs an object with "id": {request["id"]}')
        if "error" in answer:
            raise ProgramError(str(answer["error"]))
        if not isinstance(answer.get("results"), list):
            raise ProtocolError(f"answers {brief(answer)}, needs `results`, a list of arrays, or `error`")
        return [decoded(part) for part in answer["results"]]

    def _start(self):
        """Starts the process, and returns its first answer."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        try:
            words = shlex.split(self.command)
            process = self._process = subprocess.Popen(words, **pipes)
        except (OSError, ValueError, IndexError) as error:
            raise ProgramError(f"{self.command!r} cannot be started: {error}") from None
        self._end = weakref.finalize(self, _end, process)
        self._lines, self._tail = queue.Queue(), bytearray()
        threading.Thread(target=_read_lines, args=(process.stdout, self._lines), daemon=True).start()
        self._errors = threading.Thread(target=_read_tail, args=(process.stderr, self._tail), daemon=True)
        self._errors.start()
        self._write(self.first_line)
        return self._read(self._limit)

    def _write(self, line):
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except OSError:
            raise self._died() from None

    def _read(self, limit):
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            words = f"has not answered {self.first_line} within {limit:g} s; does it end its line and flush its output?"
            raise self._stopped(ProgramError, words) from None
        if not line:
            raise self._died()
        if not line.endswith(b"\n") and len(line) >= LONGEST:
            raise self._stopped(ProtocolError, f"writes a line of more than {LONGEST} bytes: {_text(line)}")
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            raise self._stopped(ProtocolError, f"answers {_text(line)}, which is no JSON") from None

    def _died(self):
        """Returns the error of a program that has closed its output."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with status {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code} ({signal.strsignal(-code)})"
        return self._stopped(ProgramError, f"the program {how}")

    def _stopped(self, kind, words):
        """Ends the process, and returns an error that ends with what it has written to standard error."""
        self._process.kill()
        self._errors.join(GRACE)
        self._process = None
        self._end()
        said = bytes(self._tail[-TAIL:]).decode(errors="replace").strip()
        return kind(f"{words}; its standard error: {said}" if said else words)


def _functions(said):
    """Returns the functions of a program's first answer: the names of parameters, or None, by name."""
    functions = dict.fromkeys(said) if isinstance(said, list) else said
    if not isinstance(functions, dict) or not functions:
        raise ProtocolError(f"`functions` is {brief(said)}, needs a list of names, as in {EXAMPLE}")
    for name, parameters in functions.items():
        if name not in table.BY_NAME or table.get(name).state:
            near = table.did_you_mean(str(name), table.BY_NAME)
            raise ProtocolError(f"`functions` has {brief(name)}, which cannot be judged{near}")
        if not isinstance(parameters, (list, type(None))) or not all(isinstance(p, str) for p in parameters or ()):
            raise ProtocolError(f"`functions` has {brief(parameters)} for {name}, needs a list of its arguments' names")
    return functions


def _known(given, key, known):
    if not isinstance(given, list) or not given or not all(each in known for each in given):
        raise ProtocolError(f"`{key}` is {brief(given)}, needs one or more of {', '.join(known)}")
    return tuple(given)


def _end(process):
    """Kills a process, and closes its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError):
            pipe.close()


def _read_lines(stream, lines):
    """Puts lines into a queue until the end, which is an empty line, or until nobody takes them."""
    with contextlib.suppress(OSError, ValueError):  # the pipe was closed
        while lines.qsize() < UNREAD and (line := stream.readline(LONGEST)):
            lines.put(line)
    lines.put(b"")


def _read_tail(stream, tail):
    """Reads a stream until its end, and stores its last bytes in ``tail``."""
    with contextlib.suppress(OSError, ValueError):
        while chunk := stream.read1(4096):
            tail += chunk
            del tail[:-TAIL]


def _text(line):
    return brief(line[:100].decode(errors="replace").strip())


def signature(name, mask_form, parameters=None):
    """Returns the signature of a program's function; all parameters are keywords.

    ``parameters`` has their names; None takes the masks, in their form, and the arguments that the definition requires.
    """
    row, ours = table.get(name), contract.signature_of(oracle_of(name)).parameters
    required = [key for key, parameter in ours.items() if parameter.default is parameter.empty]
    if parameters is None:
        masks = [key for key, argument in row.arguments.items() if argument.kind == "mask"]
        masks = [key.replace("mask", "lengths") for key in masks] if mask_form == "lengths" else masks
        masks = ["segment_ids", "num_segments"] if mask_form == "segments" else masks
        parameters = dict.fromkeys([*required, *masks])
    default = dict.fromkeys(parameters) | dict.fromkeys(required, inspect.Parameter.empty)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(key, keyword, default=default[key]) for key in parameters])


class ProgramFunction:
    """A function of a :class:`Program`, called with keywords: NumPy arrays, numbers and options."""

    def __init__(self, program, name, signature):
        self.program, self.__signature__ = program, signature
        self.__name__ = self.__qualname__ = name

    def __call__(self, **values):
        """Returns the results, a list of arrays."""
        return self.program.call(self.request(next(self.program.ids), values))

    def request(self, number, values, readable=False):
        """Returns a call as a JSON value; ``number`` is its id. Arrays are in base64, if the program reads it.

        With ``readable`` they are numbers, if the program reads these.

        Raises:
          NotApplicable: a value is a function, which no line can hold.
        """
        arguments, options = {}, {}
        order = reversed(ENCODINGS) if readable else ENCODINGS
        encoding = next(each for each in order if each in self.program.encodings)
        for key, value in values.items():
            if callable(value):
                raise NotApplicable(f"a program cannot be given a function, such as `{key}`")
            if isinstance(value, (np.ndarray, np.generic, float)):
                arguments[key] = encoded(value, encoding)
            elif value is not None:
                options[key] = value
        return {"id": number, "function": self.__name__, "arguments": arguments, "options": options}
