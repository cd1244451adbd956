"""Start of the program that ``attnpool check --command`` names."""

from dataclasses import dataclass
from typing import Any

from attnpool_ref.cli.exits import Refused
from attnpool_ref.conformance.candidates import Candidate
from attnpool_ref.conformance.candidates.adapters.program_arrays import ProgramArrays, ProtocolError
from attnpool_ref.conformance.candidates.program import Program, ProgramError
from attnpool_ref.contract.text import listed
from attnpool_ref.table import did_you_mean


@dataclass(frozen=True)
class Command:
    """A program on the command line; calling this object starts the program.

    Attributes:
      words: the command line of the program.
      row: the function to judge, or None.
      only: names of the functions to judge; if empty, ``row`` or all that the program has.
      calls: the calling convention (:class:`~attnpool_ref.conformance.Calls`).
    """

    words: str
    row: str | None = None
    only: tuple[str, ...] = ()
    calls: dict[str, Any] | None = None

    def __call__(self):
        """Starts the program; returns its Candidate, and the names of the functions to judge.

        Raises:
          Refused: the program cannot be started, its first answer is not valid, or it lacks the function ``row``.
        """
        try:
            program = Program(self.words)
        except (ProgramError, ProtocolError) as error:
            raise Refused(f"{self.words}: {error}") from None
        has = program.greeting.functions
        if self.row and self.row not in has:
            raise Refused(
                f"{self.words} has no function {self.row}, only {listed(list(has))}{did_you_mean(self.row, has)}"
            )
        calls = dict(self.calls or {})
        calls["mask_form"] = calls.get("mask_form") or program.greeting.mask
        calls["arrays"] = ProgramArrays(program)
        names = dict.fromkeys(self.only or ([self.row] if self.row else has))
        return Candidate(program.functions(calls["mask_form"]), **calls), tuple(names)
