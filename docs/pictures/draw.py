#!/usr/bin/env python3
"""Draws the charts of the tour from what the example programs print: draw.py FOLDER [CHART…], where
FOLDER has the programs."""
import math
import subprocess
import sys
from pathlib import Path

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]  # Okabe and Ito: told apart by everybody
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 70, 130, 44, 56


def printed(program, *arguments):
    return subprocess.run([Path(sys.argv[1]) / program, *arguments], capture_output=True, text=True, check=True).stdout


class Chart:
    """Lines over x and y, each linear or logarithmic."""

    def __init__(self, title, description, x, y):
        self.title, self.description = title, description
        self.x, self.y = x, y  # (label, low, high, ticks, logarithmic)
        self.body = []

    def place(self, axis, value, begin, end):
        _, low, high, _, logarithmic = axis
        scale = math.log if logarithmic else float
        return begin + (end - begin) * (scale(value) - scale(low)) / (scale(high) - scale(low))

    def at(self, x, y):
        return self.place(self.x, x, LEFT, WIDTH - RIGHT), self.place(self.y, y, HEIGHT - BOTTOM, TOP)

    def line(self, points, color, label, dashes=""):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.at(*p) for p in points))
        style = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.body.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{style}/>')
        if not dashes:
            self.body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in (self.at(*p) for p in points)]
        x, y = self.at(*points[-1])
        self.body.append(f'<text x="{x + 9:.1f}" y="{y + 4:.1f}" fill="{color}">{label}</text>')

    def note(self, x, label):
        left, _ = self.at(x, self.y[1])
        self.body.append(f'<line x1="{left:.1f}" y1="{TOP}" x2="{left:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#777" stroke-dasharray="4 4"/>')
        self.body.append(f'<text x="{left + 6:.1f}" y="{TOP + 12}" fill="#555">{label}</text>')

    def svg(self):
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            'font-family="sans-serif" font-size="13">',
            f"<title>{self.title}</title><desc>{self.description}</desc>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold">{self.title}</text>',
        ]
        for tick in self.x[3]:
            x, _ = self.at(tick, self.y[1])
            parts.append(f'<line x1="{x:.1f}" y1="{HEIGHT - BOTTOM}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM + 5}" stroke="#333"/>')
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{tick:,}</text>')
        for tick in self.y[3]:
            _, y = self.at(self.x[1], tick)
            parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>')
        parts.append(f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#333"/>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 14}" text-anchor="middle">{self.x[0]}</text>')
        parts.append(f'<text transform="translate(20 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" text-anchor="middle">{self.y[0]}</text>')
        return "\n".join(parts + self.body + ["</svg>"]) + "\n"


def longer_than_trained():
    chart = Chart("Loss by position", "Mean loss of three language models at positions 0 to 127, trained on 32 tokens",
                  ("position in the text", 0, 128, [0, 32, 64, 96, 128], False),
                  ("loss, nats per character", 2.0, 3.2, [2.0, 2.2, 2.4, 2.6, 2.8, 3.0, 3.2], False))
    chart.note(32, "end of the training length")
    for line, color in zip(printed("maki_example_longer_than_trained").splitlines()[1:4], COLORS):
        name, *losses = line.split()
        chart.line([(8 + 16 * i, float(loss)) for i, loss in enumerate(losses)], color, name)
    return chart


def attention_features():
    rows = [[float(n) for n in line.split()] for line in printed("maki_example_attention_features").splitlines()[1:6]]
    chart = Chart("Error of attention weights", "Relative error of attention weights by number of features, on logarithmic axes",
                  ("features M", 12, 5000, [16, 64, 256, 1024, 4096], True),
                  ("relative error", 0.001, 0.5, [0.001, 0.01, 0.1], True))
    chart.line([(16, rows[0][1]), (4096, rows[0][1] / 16)], "#999", "", "2 5")  # the slope −1/2
    chart.line([(row[0], row[1]) for row in rows], COLORS[0], "random")
    chart.line([(row[0], row[3]) for row in rows if len(row) > 3], COLORS[1], "landmarks")
    return chart


def trained_features():
    rows = [[float(n) for n in line.split()] for line in printed("maki_example_trained_features").splitlines()[1:]]
    chart = Chart("Error of a trained head's attention weights",
                  "Relative error of a trained head's attention weights by number of features, on logarithmic axes",
                  ("features M", 7, 150, [8, 16, 32, 64, 128], True),
                  ("relative error", 0.005, 1.5, [0.01, 0.1, 1], True))
    chart.line([(row[0], row[1]) for row in rows], COLORS[0], "random")
    chart.line([(row[0], row[2]) for row in rows], COLORS[1], "landmarks")
    return chart


def generation_cost():
    lines = printed("maki_example_generation_cost", "16384").splitlines()[1:]
    rows = [[float(n) for n in line.split()] for line in lines]
    chart = Chart("Time for the next token", "Milliseconds for the next token after 256 to 16,384 tokens, on logarithmic axes",
                  ("tokens read", 200, 20000, [256, 1024, 4096, 16384], True),
                  ("milliseconds", 0.01, 3, [0.01, 0.1, 1], True))
    chart.line([(row[0], row[1]) for row in rows], COLORS[0], "gpt")
    chart.line([(row[0], row[2]) for row in rows], COLORS[1], "linear")
    return chart


# Only those named on the command line, or all.
for draw in (longer_than_trained, attention_features, trained_features, generation_cost):
    if sys.argv[2:] and draw.__name__ not in sys.argv[2:]:
        continue
    Path(__file__).with_name(draw.__name__ + ".svg").write_text(draw().svg(), encoding="utf-8")
