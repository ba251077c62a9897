"""The rows of the table: what every check found."""
from collections.abc import Callable
from dataclasses import dataclass

import torch

from common.errors import one_line

FINE = 'ok'
WRONG = 'WRONG'
SKIPPED = 'skipped'


class Wrong(Exception):
    """What a check found is not what must be; the message says what, and what helps."""


class NotHere(Exception):
    """A check that this machine cannot do; the message says why."""


@dataclass
class Row:
    """What a check found on a device."""
    check: str
    device: str
    verdict: str
    detail: str


def run_check(name: str, device: torch.device | str, check: Callable[[], str], rows: list[Row]) -> None:
    """Run a check, print its row and add it to `rows`; the first half of the row is there while it runs.

    Args:
        name: of the check. device: what it runs on, or several in words.
        check: returns the numbers it found; raises Wrong or NotHere, or whatever fails.
        rows: of the table.
    """
    if isinstance(device, torch.device):
        device = name_of(device)
    print(f'{name:26} {device:6} ', end='', flush=True)
    verdict = FINE
    try:
        detail = check()
    except NotHere as reason:
        verdict = SKIPPED
        detail = str(reason)
    except Wrong as fault:
        verdict = WRONG
        detail = str(fault)
    except Exception as error:  # whatever fails is what is looked for; the next check runs
        verdict = WRONG
        detail = f'{type(error).__name__}: {one_line(error)}'
    print(f'{verdict:7} {detail}', flush=True)
    rows.append(Row(name, device, verdict, detail))


def name_of(device: torch.device) -> str:
    """'gpu0' for the first GPU chosen, or 'cpu'."""
    if device.type == 'cuda':
        return f'gpu{device.index}'
    return device.type
