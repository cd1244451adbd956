"""SVG in one style: colors for light and dark mode, text as text, the same bytes for the same numbers.

Padding is hatched, so that it is also visible in gray. Red is only for weight on padding.
"""

from html import escape

from attnpool_ref import plot

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1f2328",
    "muted": "#59636e",
    "line": "#c4ccd4",
    "cell": "#dbe9f6",
    "padding": "#a3acb6",
    "peer": "#8b949e",
    "real": plot.REAL,
    "leak": plot.PADDING,
}
"""Colors on white. Weights on real tokens are blue, weights on padding red."""

DARK = {
    "paper": "#0d1117",
    "ink": "#e6edf3",
    "muted": "#9aa4af",
    "line": "#3d444d",
    "cell": "#1d3a5c",
    "padding": "#6a737d",
    "peer": "#7d8590",
    "real": "#5b9fe0",
    "leak": "#f0705a",
}
"""Colors on black."""

SANS = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace"
WIDTH = 700
"""Width of every picture, so that all have the same size of letters."""

HATCHES = """<defs>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<path class="of-padding" d="M1 0V6"/></pattern>
<pattern id="leak" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect class="leak" width="6" height="6"/><path class="of-paper" d="M1 0V6"/></pattern>
</defs>"""


def colours(palette):
    """Returns the style-sheet classes of a palette's colors."""
    fills = " ".join(f".{name}{{fill:{colour}}}" for name, colour in palette.items() if name != "padding")
    strokes = (
        f".edge{{stroke:{palette['line']}}} .of-ink{{stroke:{palette['ink']}}} .of-real{{stroke:{palette['real']}}} "
        f".of-leak{{stroke:{palette['leak']}}} .of-padding{{stroke:{palette['padding']}}} .of-paper{{stroke:{palette['paper']}}}"
    )
    return f"{fills}\n{strokes}"


STYLE = f"""<style>
text{{font:14px {SANS}}} .small{{font-size:12px}} .tiny{{font-size:11px}} .bold{{font-weight:600}}
.mono{{font-family:{MONO}}} .code{{font:12px {MONO}}} .mid{{text-anchor:middle}} .end{{text-anchor:end}}
path,.edge{{fill:none}} .hatch{{fill:url(#hatch)}} .leaking{{fill:url(#leak)}} .of-ink,.of-real,.of-leak{{stroke-width:2}} .of-padding,.of-paper{{stroke-width:1.5}}
{colours(LIGHT)}
@media (prefers-color-scheme:dark){{
{colours(DARK)}
}}
</style>"""


class Picture:
    """A picture under construction; later shapes cover earlier ones."""

    def __init__(self, height, title, description):
        """Begins a picture; screen readers read ``title`` and ``description``."""
        self.height, self.parts = height, [f"<title>{escape(title)}</title>", f"<desc>{escape(description)}</desc>"]

    def rect(self, x, y, width, height, kind, radius=2):
        """Draws a rectangle of a class, such as "cell", "hatch" or "real edge"."""
        size = f'width="{number(width)}" height="{number(height)}"'
        rounded = f' rx="{number(radius)}"' if radius else ""
        self.parts.append(f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" {size}{rounded}/>')

    def text(self, x, y, text, kind="ink"):
        """Writes one line, which begins at (x, y) unless the class says "mid" or "end"."""
        self.parts.append(
            f'<text class="{kind}" x="{number(x)}" y="{number(y)}">{escape(str(text), quote=False)}</text>'
        )

    def path(self, data, kind="edge"):
        """Draws a line."""
        self.parts.append(f'<path class="{kind}" d="{data}"/>')

    def arrow(self, x, y, to_x, to_y):
        """Draws an arrow along one of the axes."""
        self.path(f"M{number(x)} {number(y)}L{number(to_x)} {number(to_y)}", "of-ink")
        head = "l-6 -4m6 4l-6 4" if to_x > x else "l-4 -6m4 6l4 -6"
        self.path(f"M{number(to_x)} {number(to_y)}{head}", "of-ink")

    def padding(self, x, y, width, height):
        """Draws a padded position."""
        self.rect(x, y, width, height, "paper edge")
        self.rect(x, y, width, height, "hatch")

    def svg(self):
        """Returns the text of the file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" role="img">'
        )
        paper = f'<rect class="paper" width="{WIDTH}" height="{self.height}" rx="6"/>'
        return "\n".join([head, *self.parts[:2], STYLE, HATCHES, paper, *self.parts[2:], "</svg>"]) + "\n"


def number(value):
    """Returns a coordinate with at most one digit after the point."""
    return f"{round(float(value), 1) + 0.0:g}"


def percent(weight):
    """Returns a weight as text for a picture."""
    return f"{100 * float(weight):.0f} %"
