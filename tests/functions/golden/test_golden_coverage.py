"""Every dense function has numbers from outside."""

import ast
from pathlib import Path

from attnpool_ref import table


def test_every_dense_function_has_golden_numbers():
    used = set()
    for path in Path(__file__).parent.glob("test_golden_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                used.add(node.value)
    missing = [row.name for row in table.VARIANTS if not row.packed and row.name not in used]
    assert missing == [], "call them in tests/functions/golden/, with numbers that do not come from attnpool_ref"
