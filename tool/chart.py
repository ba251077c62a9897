"""Line charts drawn with OpenCV: panels in a grid, linear or logarithmic axes, one colour per run."""
import math
from dataclasses import dataclass

import cv2
import numpy as np

SIZE, MARGIN = (480, 300), (62, 30, 14, 34)  # panel width, height; left, top, right, bottom around its axes, pixels
COLORS = ((180, 90, 20), (30, 90, 220), (60, 150, 50), (150, 60, 150), (40, 160, 200), (110, 110, 110))  # BGR
INK, GRID = (60, 60, 60), (228, 228, 228)
FONT, SHIFT = cv2.FONT_HERSHEY_SIMPLEX, 4  # SHIFT: binary digits of a pixel in line ends


@dataclass
class Curve:
    """One run in a panel: x, raw y and smoothed y, (N,) each; NaN where there is nothing. `color`: its number."""
    label: str
    color: int
    x: np.ndarray
    y: np.ndarray
    smoothed: np.ndarray


def draw_panels(panels):
    """{title: [Curve, ...]} -> (H, W, 3) uint8 BGR, at most three panels beside each other."""
    columns = min(3, len(panels))
    tiles = [draw_panel(title, curves) for title, curves in panels.items()]
    blank = np.full_like(tiles[0], 255)
    tiles += [blank] * (-len(tiles) % columns)
    return np.concatenate([np.concatenate(tiles[i:i + columns], 1) for i in range(0, len(tiles), columns)])


def draw_panel(title, curves):
    """One chart as (height, width, 3) uint8 BGR."""
    (width, height), (left, top, right, bottom) = SIZE, MARGIN
    img = np.full((height, width, 3), 255, np.uint8)
    xs = np.concatenate([c.x[np.isfinite(c.y)] for c in curves])
    ys = np.concatenate([c.y[np.isfinite(c.y)] for c in curves])
    log = ys.min() > 0 and ys.max() > 20 * ys.min()
    x_axis = Axis(xs.min() if len(set(xs)) > 1 else 0., xs.max(), (left, width - right))
    y_axis = Axis(*_limits(ys, log), (height - bottom, top), log)
    for tick in x_axis.ticks(8):
        x = round(x_axis.pixel(tick))
        cv2.line(img, (x, top), (x, height - bottom), GRID, 1)
        _text(img, f'{tick:g}', (x, height - bottom + 16), center=True)
    for tick in y_axis.ticks(6):
        y = round(y_axis.pixel(tick))
        cv2.line(img, (left, y), (width - right, y), GRID, 1)
        _text(img, f'{tick:.4g}', (left - 6, y + 4), right=True)
    for curve in curves:
        color = np.array(COLORS[curve.color % len(COLORS)])
        _line(img, curve.x, curve.y, (x_axis, y_axis), 255 - (255 - color) * .35, 1)
    for curve in curves:
        _line(img, curve.x, curve.smoothed, (x_axis, y_axis), COLORS[curve.color % len(COLORS)], 2)
    cv2.rectangle(img, (left, top), (width - right, height - bottom), INK, 1)
    _text(img, title, (left, top - 10), scale=.5)
    _text(img, 'epoch', (width - right, height - 4), right=True)
    for row, curve in enumerate(c for c in curves if c.label):
        y = top + 16 + 16 * row
        cv2.line(img, (width - right - 22, y - 4), (width - right - 8, y - 4), COLORS[curve.color % len(COLORS)], 2)
        _text(img, curve.label[-40:], (width - right - 28, y), right=True)
    return img


class Axis:
    """Values between `low` and `high` along the pixels from `span[0]` to `span[1]`."""

    def __init__(self, low, high, span, log=False):
        self.low, self.high, self.span, self.log = low, high, span, log

    def pixel(self, value):
        """Pixel of a value, or of an array of values; logarithmic axes clip what is not above zero."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), np.log(np.maximum(value, self.low))
        start, end = self.span
        return start + (value - low) / (high - low) * (end - start)

    def ticks(self, most):
        """At most `most` round values within the axis (at least one)."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for digits in ((1, 2, 5), (1, 3), (1,)):
                ticks = [d * 10. ** k for k in decades for d in digits if self.low <= d * 10. ** k <= self.high]
                if len(ticks) <= most:
                    return ticks
            return ticks[::math.ceil(len(ticks) / most)]
        raw = (self.high - self.low) / most
        unit = 10. ** math.floor(math.log10(raw))
        step = next(k * unit for k in (1, 2, 5, 10) if k * unit >= raw * (1 - 1e-9))
        return [i * step for i in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]


def _limits(values, log):
    """Lowest and highest value of an axis that holds `values` with some air."""
    low, high = float(values.min()), float(values.max())
    if log:
        return low / 1.1, high * 1.1
    air = .05 * (high - low) or .05 * abs(high) or 1.
    return (max(0., low - air) if low >= 0 else low - air), high + air


def _line(img, x, y, axes, color, thickness):
    """Draw a line through the points, interrupted where y is not finite."""
    known = np.isfinite(y)
    points = np.stack([axes[0].pixel(x), axes[1].pixel(np.where(known, y, 1.))], 1)
    points = np.round(points * 2 ** SHIFT).astype(np.int32)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    pieces = [points[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    cv2.polylines(img, pieces, False, tuple(float(c) for c in color), thickness, cv2.LINE_AA, SHIFT)


def _text(img, text, at, scale=.4, center=False, right=False):
    """Write at a pixel: the left end of the base line, its centre or its right end."""
    width = cv2.getTextSize(text, FONT, scale, 1)[0][0]
    x = at[0] - (width // 2 if center else width if right else 0)
    cv2.putText(img, text, (max(0, x), at[1]), FONT, scale, INK, 1, cv2.LINE_AA)
