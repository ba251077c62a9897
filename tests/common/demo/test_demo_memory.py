"""How much memory a long video needs: no more than a short one."""
import json
import os
import subprocess
import sys

import pytest

from main.config import ROOT
from tests.demo_tools import write_snapshot, write_video

SHORT, LONG, BAR = 32, 64, 300  # frames; the encoders keep up to 25
PROGRAM = """
import json, sys
from pathlib import Path
from main.demo import main

peaks = []
for clip in sys.argv[2:]:
    Path('/proc/self/clear_refs').write_text('5')  # the peak starts anew
    main(['--gpu', 'cpu', '--snapshot', sys.argv[1], '--output', 'out', '--input', clip, '--bbox', '200', '60', '180',
          '380', '--every_frame', '--smooth', 'test_batch_size=8'])
    status = dict(line.split(':', 1) for line in Path('/proc/self/status').read_text().splitlines())
    peaks.append(int(status['VmHWM'].split()[0]) / 1024)
Path('peaks.json').write_text(json.dumps(peaks))
"""


@pytest.mark.skipif(not os.access('/proc/self/clear_refs', os.W_OK), reason='no peak of the memory to read here')
@pytest.mark.timeout(600)
def test_memory_of_a_video(tmp_path):
    """300 frames of 640 x 480 stay below 2 GB: what a frame more needs is measured on short clips."""
    snapshot = write_snapshot(tmp_path / 'tiny.pth.tar')
    clips = [write_video(tmp_path / f'{number}.avi', frames, 480, 640)
             for number, frames in enumerate((SHORT, SHORT, LONG))]  # the first also loads libraries
    subprocess.run([sys.executable, '-c', PROGRAM, snapshot, *clips], cwd=tmp_path, check=True, timeout=580,
                   capture_output=True, env=os.environ | {'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1'})
    _, short, long = json.loads((tmp_path / 'peaks.json').read_text())  # MB
    per_frame = (long - short) / (LONG - SHORT)
    assert per_frame < 0.6  # a frame has 0.9 MB
    assert long + per_frame * (BAR - LONG) < 2000
