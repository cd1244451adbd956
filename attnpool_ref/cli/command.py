"""Start of the program that ``attnpool check --command`` names."""

from typing import Any

from attnpool_ref.cli.candidate import Named
from attnpool_ref.cli.exits import Refused
from attnpool_ref.conformance.candidates import Candidate
from attnpool_ref.conformance.candidates.adapters.program_arrays import ProgramArrays, ProtocolError
from attnpool_ref.conformance.candidates.program import Program, ProgramError
from attnpool_ref.contract.text import listed


class Command(Named):
    """A program: ``words`` is its command line; calling this object starts it."""

    def __call__(self):
        """Starts the program; returns its Candidate, and the names of the functions to judge.

        Raises:
          Refused: the program cannot be started, its first answer is not valid, or it lacks the function ``row``.
        """
        try:
            program = Program(self.words)
        except (ProgramError, ProtocolError) as error:
            raise Refused(f"{self.words}: {error}") from None
        if self.row and self.row not in program.functions:
            raise Refused(f"{self.words} has no function {self.row}, only {listed(program.functions)}")
        calls: dict[str, Any] = dict(self.calls or {}) | {"arrays": ProgramArrays(program)}
        calls["mask_form"] = calls.get("mask_form") or program.mask_form
        names = self.only or ([self.row] if self.row else program.functions)
        return Candidate(program.callables(calls["mask_form"]), **calls), tuple(dict.fromkeys(names))
