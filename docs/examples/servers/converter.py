"""A server of plain tools: functions, and nothing else.

python converter.py                          # on stdio, for a client that starts it
python converter.py --http --port 8000       # at http://127.0.0.1:8000/mcp
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mcpfactory_runtime import Server, ToolError

server = Server("converter", version="1", instructions="Converts temperatures and lengths.")

Temperature = Literal["celsius", "fahrenheit", "kelvin"]
_METRES = {"metre": 1.0, "foot": 0.3048, "mile": 1609.344}
_ABSOLUTE_ZERO = -273.15  # °C


@dataclass
class Reading:
    """A temperature in every unit."""

    celsius: float
    fahrenheit: float
    kelvin: float


@server.tool(annotations={"readOnlyHint": True}, inline=True)  # it only computes: no thread is needed
def convert_temperature(value: float, unit: Temperature) -> Reading:
    """Convert a temperature into all units.

    Args:
        value: the temperature.
        unit: what it is in.
    """
    celsius = {"celsius": value, "fahrenheit": (value - 32) / 1.8, "kelvin": value + _ABSOLUTE_ZERO}[unit]
    if celsius < _ABSOLUTE_ZERO:
        raise ToolError(f"{value} {unit} is below absolute zero ({_ABSOLUTE_ZERO} °C).")
    return Reading(celsius, celsius * 1.8 + 32, celsius - _ABSOLUTE_ZERO)


@server.tool(annotations={"readOnlyHint": True})
async def convert_length(
    value: float, unit: Literal["metre", "foot", "mile"], to: Literal["metre", "foot", "mile"]
) -> float:
    """Convert a length between metres, feet and miles (international, not nautical).

    Args:
        value: the length.
        unit: what it is in.
        to: what it shall be in.
    """
    return value * _METRES[unit] / _METRES[to]


@server.resource("units://{kind}", mime_type="text/plain")
async def units(kind: str) -> str | None:
    """The units of a kind: temperature or length."""
    known = {"temperature": "celsius, fahrenheit, kelvin", "length": ", ".join(_METRES)}
    return known.get(kind)


if __name__ == "__main__":
    server.run()
