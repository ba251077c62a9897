"""Property-based tests that are short by default, and a fuzzer when asked: FUZZ_SECONDS=300 for each of them."""
import os
import time

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from common.errors import UserError
from tests.faults.commands import resident

SECONDS = float(os.environ.get('FUZZ_SECONDS', 0))
EXAMPLES = 500 if SECONDS else 25
MOST = 2 ** 30  # bytes that a test may take
counts = {'inputs': 0, 'refused': 0}


def refused(read, *args):
    """The message of the UserError that `read(*args)` raises, None if it takes its input. Any other error is a fault
    of the reader; so is a message of several lines or without an end. A reader that never ends is ended by the limit
    that pytest has for every test."""
    message = None
    counts['inputs'] += 1
    try:
        read(*args)
    except UserError as error:
        counts['refused'] += 1
        message = str(error)
    assert message is None or 0 < len(message) < 2000 and '\n' not in message, message
    return message


def fuzz(check, *strategies):
    """Calls `check` with values of the strategies: a few, always the same; with FUZZ_SECONDS new ones for so long."""
    @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=not SECONDS,
              suppress_health_check=list(HealthCheck), phases=[Phase.generate])  # to shrink a failure takes minutes
    @given(values=st.tuples(*strategies))
    def examples(values):
        check(*values)

    before, end = resident('VmRSS'), time.monotonic() + SECONDS
    counts.update(inputs=0, refused=0)
    examples()
    while time.monotonic() < end:
        seed(time.time_ns())(examples)()
    assert resident('VmRSS') - before < MOST
    if SECONDS:
        print(f'{counts["inputs"]} inputs, {counts["refused"]} refused')


def mutated(good):
    """Strategy of bytes like those of `good` (a list of them): some changed, cut out, repeated, or cut off."""
    def change(data, edits, end):
        data = bytearray(data)
        for at, kind, piece in edits:
            at = int(at * len(data))
            if kind == 'put':
                data[at:at + len(piece)] = piece
            elif kind == 'insert':
                data[at:at] = piece
            else:
                del data[at:at + len(piece)]
        return bytes(data[:int(end * len(data)) + 1])
    edit = st.tuples(st.floats(0, 1), st.sampled_from(('put', 'insert', 'delete')), st.binary(min_size=1, max_size=8))
    return st.builds(change, st.sampled_from(good), st.lists(edit, max_size=6), st.just(1.) | st.floats(0, 1))


# Not of all Unicode: Hypothesis would need seconds to prepare that.
TEXT = st.text('abz019 .,-+=[]{}()<>:;"\'\\/%$&*!?#@~^|`_\0\n\t\x7f\xa0ä٣²名\u2028\ud800\uffff', max_size=8)
SCALARS = (st.none() | st.booleans() | st.integers() | st.floats() | TEXT
           | st.sampled_from([10 ** 400, -1, 2 ** 63, '0', '', '\0', float('nan'), float('inf')]))
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=5)
                      | st.dictionaries(TEXT, inner, max_size=3), max_leaves=12)


def edited(content, edits):
    """A JSON value with some of its parts replaced (or taken out where the new value is ...). edits: [(numbers from 0
    to 1 that lead to the part, the new value)]."""
    for way, value in edits:
        parent, key = None, None
        here = content
        for number in way:
            keys = list(here) if isinstance(here, dict) else range(len(here)) if isinstance(here, list) else ()
            if not keys:
                break
            parent, key = here, list(keys)[min(int(number * len(keys)), len(keys) - 1)]
            here = parent[key]
        if parent is None:
            content = value if value is not ... else None
        elif value is ...:
            del parent[key]
        else:
            parent[key] = value
    return content


EDITS = st.lists(st.tuples(st.lists(st.floats(0, 1), max_size=6), VALUES | st.just(...)), min_size=1, max_size=3)
