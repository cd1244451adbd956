"""The table of compiled programs, written into docs/performance.md between two markers."""


def write(found, document):
    pass


def summary(result):
    """One line of a result."""
    if "bytes" not in result:
        return result.get("error") or result.get("no")
    x = result["x"] or 1
    parts = [f"{result['bytes'] / x:.2f} x", f"{result['bytes'] / result['floor']:.2f} floors", f"temporaries {result['temporaries'] / x:.2f} x"]
    if result["cycles"]:
        parts.append(f"{result['cycles'] / 1e6:.1f} M cycles")
    if result["wide"]:
        parts.append(f"{result['wide']} wide")
    counts = dict(result["counts"])
    if counts.get("loops"):
        parts.append(f"{counts.pop('loops')} loops of at most {result['steps']} steps")
    return ", ".join([*parts, *(f"{count} {name}" for name, count in counts.items())])
