"""What a judgement found, as data: rows, cells, hazards, and for each failure Python code that shows it again."""

from dataclasses import asdict, dataclass, field

SCHEMA_VERSION = 1

HELD, FAILED, NOT_APPLICABLE = "held", "failed", "n/a"


@dataclass
class Measure:
    """A worst error and what was allowed there, both in units of the dtype's epsilon of the result's size."""

    error: float
    allowed: float
    case: str

    @property
    def passed(self):
        """Whether the error was allowed; NaN never is."""
        return self.error <= self.allowed


@dataclass
class Cell:
    """One dtype of one row; None is n/a."""

    forward: Measure | None = None
    gradient: Measure | None = None


@dataclass
class Failure:
    """A check that did not hold, on the smallest arguments found."""

    row: str
    check: str
    dtype: str
    message: str
    snippet: str
    size: int


@dataclass
class RowReport:
    """One row: status is "pass", "fail", "missing" or "n/a"."""

    name: str
    status: str = NOT_APPLICABLE
    cells: dict[str, Cell] = field(default_factory=dict)
    hazards: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    cases: int = 0
    seconds: float = 0.0


@dataclass
class Report:
    """All rows of one candidate."""

    candidate: str
    device: str
    versions: dict[str, str]
    rows: list[RowReport]

    @property
    def passed(self):
        """Whether no row failed and at least one passed."""
        statuses = {row.status for row in self.rows}
        return "fail" not in statuses and "pass" in statuses

    @property
    def smallest_failure(self):
        """The failure with the smallest arguments, or None."""
        failures = [f for row in self.rows for f in row.failures]
        return min(failures, key=lambda f: f.size, default=None)

    def as_dict(self):
        """Plain data for JSON; ``schema_version`` grows when a key changes its meaning."""
        rows = [asdict(row) for row in self.rows]
        for row, source in zip(rows, self.rows, strict=True):
            for dtype, cell in source.cells.items():
                for kind in ("forward", "gradient"):
                    measure = getattr(cell, kind)
                    if measure is not None:
                        row["cells"][dtype][kind]["passed"] = measure.passed
        return {
            "schema_version": SCHEMA_VERSION,
            "candidate": self.candidate,
            "device": self.device,
            "versions": self.versions,
            "passed": self.passed,
            "rows": rows,
        }
