"""Charts as SVG for light and dark pages. Written directly, so that benchmarks need no plotting package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

from benchmarks.kept import Chart

_WIDTH, _HEIGHT = 720, 360
_LEFT, _TOP, _RIGHT, _BOTTOM = 64, 36, 190, 52
_COLOURS: Final = ("#0969da", "#bf8700", "#1a7f37", "#cf222e", "#8250df", "#57606a", "#bc4c00", "#0a7ea4")
_DARK: Final = ("#58a6ff", "#d29922", "#3fb950", "#ff7b72", "#bc8cff", "#9aa4ae", "#f0883e", "#39c5cf")
_STEPS: Final = (1.0, 2.0, 5.0, 10.0)


def draw(chart: Chart) -> str:
    """The chart as one SVG file."""
    body = _bars(chart) if chart.kind == "bars" else _lines(chart)
    text = escape(chart.title)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'aria-label="{text}" font-family="system-ui, sans-serif" font-size="12">',
            f"<title>{text}</title>",
            f"<style>{_style()}</style>",
            f'<text class="t" x="{_LEFT}" y="18" font-size="14" font-weight="600">{text}</text>',
            *body,
            *_legend(chart),
            f'<text class="t" x="{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}" y="{_HEIGHT - 10}" text-anchor="middle">'
            f"{escape(chart.x)}</text>",
            f'<text class="t" x="14" y="{(_TOP + _HEIGHT - _BOTTOM) / 2:.0f}" text-anchor="middle" '
            f'transform="rotate(-90 14 {(_TOP + _HEIGHT - _BOTTOM) / 2:.0f})">{escape(chart.y)}</text>',
            "</svg>",
            "",
        ]
    )


def _style() -> str:
    def rules(text: str, grid: str, colours: Sequence[str]) -> str:
        some = f".t{{fill:{text}}}.g{{stroke:{grid}}}"
        return some + "".join(f".s{n}{{stroke:{c}}}.f{n}{{fill:{c}}}" for n, c in enumerate(colours))

    light, dark = rules("#1f2328", "#d0d7de", _COLOURS), rules("#e6edf3", "#30363d", _DARK)
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"


class _Scale:
    """Maps values to positions on an axis from `start` to `end`."""

    def __init__(self, values: Sequence[float], start: float, end: float, log: bool) -> None:
        self._start, self._end, self._log = start, end, log
        if log:
            low = 10 ** math.floor(math.log10(min(values)) + 1e-9)
            high = 10 ** math.ceil(math.log10(max(values)) - 1e-9)
            self._low, self._high = low, max(high, low * 10)
            count = round(math.log10(self._high / self._low))
            self.ticks = [low * 10**n for n in range(count + 1)]
        else:
            step = _step(max(values) or 1.0)
            self._low, self._high = 0.0, math.ceil(max(values) / step - 1e-9) * step or step
            self.ticks = [n * step for n in range(round(self._high / step) + 1)]

    def __call__(self, value: float) -> float:
        if self._log:
            share = math.log(value / self._low) / math.log(self._high / self._low)
        else:
            share = (value - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)


def _step(most: float) -> float:
    rough = most / 5
    power = 10 ** math.floor(math.log10(rough))
    return float(power * next(one for one in _STEPS if rough <= one * power * (1 + 1e-9)))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def _rows(scale: _Scale) -> list[str]:
    """The horizontal grid lines, with the numbers of the y axis."""
    made = []
    for tick in scale.ticks:
        y = scale(tick)
        made.append(f'<line class="g" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        made.append(
            f'<text class="t" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(tick)}</text>'
        )
    return made


def _lines(chart: Chart) -> list[str]:
    points = [(float(x), y) for _, line in chart.lines for x, y in line]
    across = _Scale([x for x, _ in points], _LEFT, _WIDTH - _RIGHT, chart.log)
    up = _Scale([y for _, y in points], _HEIGHT - _BOTTOM, _TOP, chart.log)
    made = _rows(up)
    for x in sorted({x for x, _ in points}):
        made.append(
            f'<text class="t" x="{across(x):.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{_number(x)}</text>'
        )
    for n, (_, line) in enumerate(chart.lines):
        places = [(across(float(x)), up(y)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        made.append(f'<polyline class="s{n}" points="{path}" fill="none" stroke-width="2"/>')
        made += [f'<circle class="f{n}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
    return made


def _bars(chart: Chart) -> list[str]:
    up = _Scale([y for _, line in chart.lines for _, y in line], _HEIGHT - _BOTTOM, _TOP, chart.log)
    groups = list(dict.fromkeys(str(x) for _, line in chart.lines for x, _ in line))
    room = (_WIDTH - _RIGHT - _LEFT) / len(groups)
    width = room * 0.8 / len(chart.lines)
    made = _rows(up)
    for at, group in enumerate(groups):
        left = _LEFT + room * at
        made.append(
            f'<text class="t" x="{left + room / 2:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">'
            f"{escape(group)}</text>"
        )
        for n, (_, line) in enumerate(chart.lines):
            for x, y in line:
                if str(x) == group:
                    top = up(y)
                    made.append(
                        f'<rect class="f{n}" x="{left + room * 0.1 + width * n:.1f}" y="{top:.1f}" '
                        f'width="{width:.1f}" height="{max(1.0, _HEIGHT - _BOTTOM - top):.1f}"/>'
                    )
    return made


def _legend(chart: Chart) -> list[str]:
    made = []
    for n, (name, _) in enumerate(chart.lines):
        y = _TOP + 8 + 18 * n
        made.append(
            f'<rect class="f{n}" x="{_WIDTH - _RIGHT + 14}" y="{y - 9}" width="10" height="10" rx="2"/>'
        )
        made.append(f'<text class="t" x="{_WIDTH - _RIGHT + 30}" y="{y}">{escape(name)}</text>')
    return made
